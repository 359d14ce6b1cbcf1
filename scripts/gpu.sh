#!/usr/bin/env bash
# The run-book of a GPU: measures what this package does on one, stage by stage, each within ten minutes.
#
#   bash scripts/gpu.sh pack --raw FOLDER     # where there is a network: wheels and text to carry along, into work/gpu-pack
#   bash scripts/gpu.sh hardware tests        # on the machine with the GPU; all stages: bash scripts/gpu.sh --help
#   bash scripts/gpu.sh report
#
# Where work/gpu-pack/wheels has wheels they are used with the machine's own Python and PyTorch, without any network;
# else .venv is set up. Run again, a stage goes on where it was.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packed=${DOCNMT_GPU_PACK:-$ROOT/work/gpu-pack}
use_packed() { # [the archive is unpacked once, beside itself]
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
        given+=(--raw "$text/raw" --prepared "$text/recipe" --data "$text/recipe/data/data-bin")
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
