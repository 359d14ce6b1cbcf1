#!/usr/bin/env bash
# Measurements on a GPU, in stages of at most ten minutes.
#
#   bash scripts/gpu.sh pack --raw FOLDER     # with network access: wheels and text into work/gpu-pack
#   bash scripts/gpu.sh hardware tests        # on the machine with the GPU; all stages: bash scripts/gpu.sh --help
#   bash scripts/gpu.sh report
#
# Wheels in work/gpu-pack/wheels are used with the Python and PyTorch of the machine, without network access; otherwise
# .venv is set up. A stage that is run again measures missing points only.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packed=${DOCNMT_GPU_PACK:-$ROOT/work/gpu-pack}
use_packed() {
    local command site=$packed/site text=$packed/real-text
    if [ ! -e "$site/.done" ]; then
        python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$packed"/wheels/*.whl
        touch "$site/.done"
    fi
    if [ -e "$text.tar.xz" ] && [ ! -d "$text" ]; then
        mkdir -p "$text.part"
        tar -xJf "$text.tar.xz" -C "$text.part"
        mv "$text.part" "$text"
    fi
    if [ -d "$text" ]; then
        given+=(--raw "$text/raw" --prepared "$text/recipe")
    fi
    export PYTHONPATH=$site:$ROOT${PYTHONPATH:+:$PYTHONPATH} PATH=$packed/bin:$PATH DOCNMT_INSTALLED=1
    mkdir -p "$packed/bin"
    for command in docnmt:docnmt_fairseq fairseq-train:fairseq_cli.train fairseq-generate:fairseq_cli.generate; do
        printf '#!/usr/bin/env bash\nexec python3 -m %s "$@"\n' "${command#*:}" > "$packed/bin/${command%%:*}"
        chmod +x "$packed/bin/${command%%:*}"
    done
}

given=()
if has_gpu && compgen -G "$packed/wheels/*.whl" > /dev/null; then
    use_packed
else
    set_up
fi
cd "$ROOT"
exec python3 -m benchmarks.gpu "${given[@]}" "$@"
