# Sourced by the scripts that compare us with others: their options, our programs, and Python packages in environments of their own.
# Sets `here` (this folder), `build` and `venv`, which options may change.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(dirname "$here")/build/release
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ronda/peers

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

read_options() { # read_options "NAME…" ARGUMENT…: `--NAME VALUE` sets the variable NAME; --help calls `usage`
  local names=" $1 "
  shift
  while (($#)); do
    case $1 in
      --help | -h) usage; exit 0 ;;
    esac
    [[ $1 == --* && $names == *" ${1#--} "* ]] || fail "unknown option $1; see --help"
    (($# >= 2)) || fail "$1 needs a value"
    declare -g "${1#--}=$2"
    shift 2
  done
}

require_program() { # require_program NAME
  [[ -x $build/apps/$1 ]] || fail "$build/apps/$1 is missing; build it, or name another build with --build"
}

# Installed the first time. Sets `python`, in which MODULE is.
require_packages() { # require_packages ENVIRONMENT MODULE SIZE PACKAGE…
  local environment=$venv/$1 module=$2 size=$3 log=$venv/install_$2.log packages
  shift 3
  python=$environment/bin/python
  "$python" -c "import $module" 2>/dev/null && return
  printf -v packages ', %s' "$@"
  echo "Installing into $environment with pip: ${packages:2} (about $size)"
  mkdir -p "$venv"
  { [[ -x $python ]] || python3 -m venv "$environment"; } && "$python" -m pip install "$@" >"$log" 2>&1 ||
    fail "cannot be installed here; see $log"
}

processor() { grep -m1 'model name' /proc/cpuinfo | cut -d: -f2; }
