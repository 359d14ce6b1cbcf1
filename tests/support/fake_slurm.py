"""sbatch, srun, squeue and scontrol of one machine, by the name they are called by; jobs wait in $FAKE_SLURM."""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

QUEUE = Path(os.environ["FAKE_SLURM"])
KNOWN = ("job-name", "array", "chdir", "output", "open-mode", "signal", "time", "partition", "mem", "cpus-per-task")
LIMIT = QUEUE / "MaxArraySize"  # of another size than Slurm's default
KNOWN += ("dependency", "gpus", "account", "nodes", "ntasks-per-node", "gpus-per-node")


def directives(script, *given):
    """The options of a job: those in its script, then those given to sbatch."""
    parser = argparse.ArgumentParser()
    for name in KNOWN:
        parser.add_argument(f"--{name}")
    parser.add_argument("--requeue", action="store_true")
    lines = [line for line in script.read_text().splitlines() if line.startswith("#SBATCH ")]
    return parser.parse_args([*(word for line in lines for word in shlex.split(line)[1:]), *given])


def sbatch(arguments):
    assert arguments[0] == "--parsable"
    place = next(place for place, word in enumerate(arguments) if word.endswith(".sh"))
    script, given, behind = Path(arguments[place]), arguments[1:place], arguments[place + 1 :]
    asked = directives(script, *given)
    first, last = asked.array.split("%")[0].split("-") if asked.array else (0, 0)
    if int(last) >= array_size():
        sys.exit("sbatch: error: Batch job submission failed: Invalid job array specification")
    number = str(len(list(QUEUE.glob("submitted-*"))) + 1)
    (QUEUE / f"submitted-{number}").write_text(script.read_text())
    (QUEUE / f"script-{number}").write_text(str(script))
    for task in range(int(first), int(last) + 1):
        (QUEUE / f"{number}_{task}").touch()
        words = [str(script), number, str(task), json.dumps(given), json.dumps(behind)]
        subprocess.Popen(
            [sys.executable, __file__, *words], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    if (QUEUE / "kill").exists():  # who submitted, before it hears of the number
        (QUEUE / "kill").unlink()
        os.kill(os.getppid(), signal.SIGKILL)
    print(f"{number};here")


def array_size():
    return int(LIMIT.read_text()) if LIMIT.exists() else 1001


def run_task(script, number, task, given, behind):
    """One task, and again each time that it was put back into the queue."""
    asked, entry = directives(Path(script), *json.loads(given)), QUEUE / f"{number}_{task}"
    environment = {**os.environ, "SLURM_JOB_ID": number, "SLURM_JOB_NUM_NODES": asked.nodes or "1"}
    environment["SLURM_JOB_NODELIST"] = f"here[1-{asked.nodes or 1}]"
    if asked.array:
        environment |= {"SLURM_ARRAY_JOB_ID": number, "SLURM_ARRAY_TASK_ID": task}
    output = (asked.output or "slurm-%A.out").replace("%A", number).replace("%a", task).replace("%%", "%")
    while asked.dependency and tasks_of(asked.dependency.removeprefix("afterany:")):
        time.sleep(0.05)
    restarts = 0
    while entry.exists():
        with open(output, "a") as stream:
            environment["SLURM_RESTART_COUNT"] = str(restarts)
            entry.write_text("")
            command = ["bash", script, *json.loads(behind)]
            process = subprocess.Popen(command, cwd=asked.chdir, env=environment, stdout=stream, stderr=stream)
            (QUEUE / f"{number}_{task}.pid").write_text(str(process.pid))
            process.wait()
        restarts += 1
        if entry.read_text() != "requeued":
            entry.unlink()


def srun(arguments):
    """A task for each node of the job, all on this machine; ends with the highest status, as Slurm's does."""
    parser = argparse.ArgumentParser()
    for name in ("nodes", "ntasks", "ntasks-per-node"):
        parser.add_argument(f"--{name}")
    asked, command = parser.parse_known_args(arguments)
    assert asked.nodes == asked.ntasks == os.environ["SLURM_JOB_NUM_NODES"] and asked.ntasks_per_node == "1"
    tasks = []
    signal.signal(signal.SIGUSR1, lambda number, frame: [task.send_signal(number) for task in tasks])
    for node in range(int(asked.nodes)):
        tasks.append(subprocess.Popen(command, env={**os.environ, "SLURM_NODEID": str(node)}))
    statuses = [task.wait() for task in tasks]
    sys.exit(max(status if status >= 0 else 128 - status for status in statuses))


def tasks_of(number):
    """Those that wait or run."""
    return [path.name for path in QUEUE.glob(f"{number}_*") if "." not in path.name]


def squeue(arguments):
    flaky = QUEUE / "busy"
    if flaky.exists():
        flaky.unlink()
        sys.exit("slurm_load_jobs error: Socket timed out on send/recv operation")
    if "--user" in arguments:
        assert arguments[-3:] == [str(os.getuid()), "--format", "%F %o"]
        scripts = {path.name.removeprefix("script-"): path.read_text() for path in QUEUE.glob("script-*")}
        print("".join(f"{number} {script}\n" for number, script in scripts.items() if tasks_of(number)), end="")
        return
    tasks = tasks_of(arguments[arguments.index("--jobs") + 1])
    if not tasks:
        sys.exit("slurm_load_jobs error: Invalid job id specified")
    assert arguments[-2:] == ["--format", "%K"]
    print("\n".join(task.split("_")[1] for task in tasks))


def scontrol(arguments):
    if arguments == ["show", "config"]:
        print(f"Configuration data as of now\nMaxArraySize            = {array_size()}\nMaxDBDMsgs = 20000")
        return
    if arguments[:2] == ["show", "hostnames"]:
        assert arguments[2] == os.environ["SLURM_JOB_NODELIST"]
        print("127.0.0.1\n" * int(os.environ["SLURM_JOB_NUM_NODES"]), end="")
        return
    assert arguments[0] == "requeue"
    entry = arguments[1] if "_" in arguments[1] else f"{arguments[1]}_0"
    (QUEUE / entry).write_text("requeued")
    time.sleep(0.05)
    os.kill(int((QUEUE / f"{entry}.pid").read_text()), signal.SIGTERM)  # as Slurm ends what it puts back


COMMANDS = {"sbatch": sbatch, "srun": srun, "squeue": squeue, "scontrol": scontrol}

if __name__ == "__main__":
    called = Path(sys.argv[0]).name
    if called in COMMANDS:
        COMMANDS[called](sys.argv[1:])
    else:
        run_task(*sys.argv[1:])
