# A volunteer, a monitor or an authority in a container.
#
#     docker build -t volunteer .
#     docker run --rm -it --init --gpus all --stop-timeout 60 -v volunteer:/state -p 31337:31337 \
#         volunteer join RUN --port 31337 --name Ada
#
# `--build-arg VARIANT=cpu` needs no GPU, and then no `--gpus all`. It takes PyTorch's small build
# for CPUs where pip is pointed at PyTorch's index of them (`--build-arg PIP_EXTRA_INDEX_URL=...`),
# else the registry's. RUN is an address, or a file that you mount. A Hugging Face token goes in
# with `-e HF_TOKEN`.

ARG PYTHON=3.11.13-slim-bookworm
ARG VARIANT=cuda

FROM python:${PYTHON} AS base
# Identity, backups, downloads: a volunteer who comes back is recognised by what is in here.
ENV XDG_STATE_HOME=/state \
    XDG_CACHE_HOME=/state/cache \
    HF_HOME=/state/huggingface \
    PYTHONUNBUFFERED=1
RUN useradd --uid 10001 --create-home volunteer \
    && mkdir /state \
    && chown volunteer:volunteer /state
WORKDIR /app
COPY requirements/ requirements/
# The files name every package and its hash, so pip needs no resolver; the packages that come as
# sources are built by the pinned setuptools, which PyTorch's file brings.

FROM base AS cuda
RUN pip install --no-cache-dir --no-deps --require-hashes --no-build-isolation \
    -r requirements/torch.txt
# PyTorch brings the CUDA libraries; the driver comes from the host, by NVIDIA's container toolkit.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility

FROM base AS cpu
ARG PIP_EXTRA_INDEX_URL=""
RUN pip install --no-cache-dir --no-deps --require-hashes --no-build-isolation \
    -r requirements/torch-cpu.txt \
    || pip install --no-cache-dir --no-deps --require-hashes --no-build-isolation \
    -r requirements/torch.txt

# hadolint ignore=DL3006
FROM ${VARIANT}
WORKDIR /app
RUN pip install --no-cache-dir --no-deps --require-hashes --no-build-isolation \
    -r requirements/training.txt
COPY LICENSE pyproject.toml ./
COPY calculator/ calculator/
COPY training/ training/
USER 10001
VOLUME /state
EXPOSE 31337
HEALTHCHECK --interval=60s --timeout=10s --start-period=300s \
    CMD ["python", "-m", "training.run.health", "/state"]
ENTRYPOINT ["python", "-m", "training"]
CMD ["--help"]
