# Sourced by the scripts beside it: one Python, uv in .uv/, the project's environment in .venv/.
# Nothing is installed outside the project folder. Must stay POSIX sh, and must not start anything itself.

# The sourcing script has set $here to the folder of the scripts.
root=$(CDPATH='' cd -- "$here/.." && pwd)
uv_version=0.13.7

# Only the project's own environment counts, whatever the caller has activated or exported.
unset VIRTUAL_ENV PYTHONHOME PYTHONPATH
export UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT="$root/.venv" PIP_USER=0
# The machine's own certificates, where it has any: behind a company proxy only these are right.
if [ -s /etc/ssl/certs/ca-certificates.crt ]; then
    export UV_SYSTEM_CERTS=1
fi

# One argument, one line.
say() { printf '%s\n' "$@" >&2; }

fail() {
    say "$@"
    exit 1
}

# Prints the comment at the head of the calling script when the first argument asks for help.
help_if_asked() {
    case "${1:-}" in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    esac
}

# Sets $python to the interpreter behind $PYTHON, or behind the first python3 that is new enough.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3 python3.14 python3.13 python3.12 python3.11
    fi
    for candidate in "$@"; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$("$candidate" -c 'import sys; print(getattr(sys, "_base_executable", "") or sys.executable)')
            return 0
        fi
    done
    fail "Python 3.11 or newer is needed, and none was found (tried: $*)." \
        "Install it (Debian, Ubuntu: apt install python3 python3-venv), or name one: PYTHON=/path/to/python3 $0"
}

has_venv() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }

ensure_uv() {
    uv=$root/.uv/bin/uv
    if [ "$("$uv" --version 2>/dev/null | cut -d ' ' -f 2)" = "$uv_version" ]; then
        return 0
    fi
    # Debian ships Python without ensurepip; `python3 -m venv` would leave half an environment behind.
    if ! has_venv && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing python3-venv ..."
        apt-get install -y -q python3-venv >/dev/null 2>&1 ||
            { apt-get update -q && apt-get install -y -q python3-venv; } >/dev/null 2>&1 || :
    fi
    has_venv || fail \
        "$python cannot make virtual environments: its ensurepip module is missing." \
        "Debian, Ubuntu: apt install python3-venv   (with sudo where needed), then run the same command again."
    say "installing uv $uv_version into .uv/ ..."
    "$python" -m venv --clear "$root/.uv"
    "$root/.uv/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$uv_version" || fail \
        "uv could not be installed. Is the Python package index reachable from here (proxy, pip configuration)?"
}

# Brings .venv in line with uv.lock; the arguments choose the dependency groups.
prepare() {
    find_python
    ensure_uv
    [ -d "$root/.venv" ] || say "installing the locked dependencies into .venv/ ..."
    UV_PYTHON=$python "$uv" sync --quiet --frozen --project "$root" "$@" || fail \
        "The environment could not be set up; uv's own message is above."
}
