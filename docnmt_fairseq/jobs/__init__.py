"""Work in parts: ``docnmt`` commands that an engine runs as processes, with Ray or with Slurm.

A command that shares its work out makes a :class:`Job` of each part, and :func:`run_jobs` sees to it that all of them
are done: what is done is skipped, what fails is tried again, and a manifest tells how far it is.
"""

from docnmt_fairseq.jobs.engines import ENGINES, Engine, EngineOptions
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.jobs.run import run_jobs

__all__ = ["ENGINES", "Engine", "EngineOptions", "Job", "run_jobs"]
