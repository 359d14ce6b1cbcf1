# docnmt and fairseq's commands with the versions of requirements.lock, for CPUs or GPUs:
#
#   docker build -t docnmt --build-arg TORCH_INDEX=URL .      # URL: PyTorch's index of CPU builds
#   docker build -t docnmt-cuda --build-arg BASE=nvidia/cuda:12.8.1-base-ubuntu24.04 .
#   docker run --rm -v "$PWD:/data" -w /data docnmt docnmt doctor          # with GPUs: --gpus all
#
# The base needs apt and Python 3.11 or 3.12: Debian 12, Ubuntu 24.04.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
# Empty: the build in pip's index, which contains the CUDA libraries.
ARG TORCH_INDEX=
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates g++ git python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/docnmt
COPY . .
RUN DOCNMT_TORCH_INDEX=${TORCH_INDEX} bash -c '. scripts/common.sh && set_up' && rm -rf /root/.cache
# Kernels for all instruction sets, so that no container compiles them.
RUN .venv/bin/python -c \
    "from docnmt_fairseq.native.build import *; [build(name, HERE / library_name(name)) for name in variants()]"
ENV PATH=/opt/docnmt/.venv/bin:$PATH
CMD ["docnmt", "--help"]
