#!/usr/bin/env bash
# The one script: from a bare Debian 12 to a study, or to tests that have run.
#
#   ./x study [options]   install what is missing, build, run 'paceline study --quick', name the report
#   ./x test [--long]     install, build and run the tests; --long: the slow ones too
#   ./x build             install and build: build/release/paceline
#   ./x bench [PEER.py]   install, build and run the benchmarks, beside a peer trainer's script if given
#   ./x fmt               clang-format on the sources
#   ./x check             format, layers, build and tests, as CI does
#   ./x doctor            build, then what this machine offers
#
# Where everything is there already, each starts in seconds. PACELINE_WERROR=ON makes warnings errors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly build_dir=build/release
export NINJA_STATUS='[%f/%t %es] '

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'x: %s\n' "$*" >&2; exit 1; }
since() { printf -- '-- %s: %d s\n' "$1" $((SECONDS - $2)); }

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }

# --- packages -------------------------------------------------------------------------------------------------

packages_of() {  # sections...
  awk -v wanted=" $* " '
    { sub(/#.*/, "") } /^\[/ { gsub(/[][ ]/, ""); on = index(wanted, " " $0 " ") > 0; next } on && NF { print $1 }
  ' packages.txt
}

have_node() {
  command -v npm >/dev/null && command -v node >/dev/null &&
    [ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -ge 18 ]
}

missing_of() {  # package names...
  local installed
  # dpkg-query answers 1 when it does not know one of them: that is what is asked, not an error.
  installed=" $({ dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true; } |
                awk '$2 == "installed" { print $1 }' | tr '\n' ' ') "
  local name
  for name in "$@"; do [[ $installed == *" $name "* ]] || printf '%s\n' "$name"; done
}

install() {  # sections...
  if ! command -v dpkg-query >/dev/null; then
    echo "x: this is no Debian: what is needed stands in packages.txt under [$*]; going on with what is here" >&2
    return
  fi
  local sections=("$@")
  have_node || sections+=(page)
  local missing
  mapfile -t missing < <(missing_of $(packages_of "${sections[@]}"))
  [ ${#missing[@]} -eq 0 ] && return
  local begin=$SECONDS
  local apt=(apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120)
  local line="apt-get install --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "${#missing[@]} packages are missing, and this is neither root nor is there sudo; as root, run:
  $line"
    apt=(sudo env DEBIAN_FRONTEND=noninteractive "${apt[@]}")
  fi
  say "installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${apt[@]}" update || fail "the package lists could not be read (see above); is there a network, and a mirror in /etc/apt?"
  "${apt[@]}" install --no-install-recommends "${missing[@]}" || fail "installing failed (see above); by hand: $line"
  since install "$begin"
}

# --- building -------------------------------------------------------------------------------------------------

# cmake/web.cmake builds the report page with npm. The libraries are fetched here, before, so that a machine without
# a network still gets its program: with the plain page, and the same tables.
web=ON
fetch_page_libraries() {  # [with-tests]
  local installed=web/node_modules/.package-lock.json wanted=(--omit=dev)
  [ "${1:-}" = with-tests ] && wanted=()
  have_node || { echo "x: no node 18 with npm: the report page will be the plain one" >&2; web=OFF; return 0; }
  if [ -f $installed ] && [ ! web/package-lock.json -nt $installed ] &&
    { [ "${1:-}" != with-tests ] || [ -x web/node_modules/.bin/vitest ]; }; then
    return 0
  fi
  local begin=$SECONDS
  say "libraries of the report page: npm ci"
  if (cd web && npm ci --no-audit --no-fund --loglevel=error "${wanted[@]}"); then
    touch $installed
    since npm "$begin"
  else
    echo "x: npm could not fetch the page's libraries (see above): the report page will be the plain one" >&2
    web=OFF
  fi
}

configure() {  # NAME=VALUE...
  local option changed=no
  local wanted=("PACELINE_WERROR=${PACELINE_WERROR:-OFF}" "PACELINE_WEB=$web" "$@")
  for option in "${wanted[@]}"; do
    grep -qs "^${option%%=*}:[A-Z]*=${option#*=}\$" $build_dir/CMakeCache.txt || changed=yes
  done
  [ $changed = no ] && [ -f $build_dir/build.ninja ] && return
  say "configuring"
  cmake --preset release "${wanted[@]/#/-D}"
}

build() {  # ninja targets...
  local begin=$SECONDS
  say "building ${*:-all}"
  ninja -C $build_dir -j"$(nproc)" "$@"
  since build "$begin"
}

build_program() {
  install build
  fetch_page_libraries
  # Tests stay as they were configured: switching them off and on would cost a run of cmake each time.
  if [ -f $build_dir/build.ninja ]; then configure; else configure PACELINE_TESTS=OFF; fi
  build paceline
}

# --- commands -------------------------------------------------------------------------------------------------

run_study() {
  build_program
  local out=paceline-out/study arguments=(--quick "$@") i
  for ((i = 0; i < ${#arguments[@]}; ++i)); do
    case ${arguments[i]} in
      --out) out=${arguments[i + 1]:-$out} ;;
      --out=*) out=${arguments[i]#--out=} ;;
    esac
  done
  local begin=$SECONDS
  say "paceline study ${arguments[*]}"
  $build_dir/paceline study "${arguments[@]}"
  since study "$begin"
  printf '\nThe report: %s\n' "$(realpath "$out/report.html")"
}

run_tests() {
  while [ $# -gt 0 ]; do
    case $1 in
      --long) export PACELINE_LONG=1 ;;  # without it ctest leaves out what is labelled long
      *) fail "test knows --long only, not '$1'" ;;
    esac
    shift
  done
  install build test
  fetch_page_libraries with-tests
  configure PACELINE_TESTS=ON
  build
  local begin=$SECONDS results=$PWD/$build_dir/tests.xml progress=()
  [ -t 1 ] && progress=(--progress)
  say "tests"
  rm -f "$results"
  local code=0
  # For two cores: one test of two or two of one, and one that waits (tests/CMakeLists.txt).
  ctest --test-dir $build_dir -j3 --output-on-failure --no-tests=error "${progress[@]}" \
    --output-junit "$results" || code=$?
  [ -s "$results" ] || fail "ctest left no results (exit code $code)"
  since tests "$begin"
  tools/test_summary "$results" && [ "$code" -eq 0 ]
}

run_bench() {  # [the peer trainer's script]
  install build
  [ $# -eq 0 ] || install build test
  fetch_page_libraries
  configure PACELINE_BENCH=ON
  build paceline comm_bench bench_train_step ledger_cost bench_layers bench_registers
  say "all-reduce, beside memcpy"
  $build_dir/bench/comm_bench
  say "the ledger's share of a step"
  $build_dir/bench/ledger_cost
  say "every layer and direction, beside oneDNN"
  $build_dir/bench/bench_layers >/dev/null
  say "one-core workers alone and in pairs, beside multiply-adds in registers"
  /usr/bin/python3 bench/core_efficiency.py --bench $build_dir/bench
  say "two workers of one core, and one of two"
  /usr/bin/python3 bench/two_cores.py --program $build_dir/paceline
  if [ $# -eq 0 ]; then
    say "a training step of resnet18-cifar (./x bench PEER.py puts a peer trainer beside it)"
    $build_dir/bench/bench_train_step
  else
    say "a training step of resnet18-cifar, beside $1"
    /usr/bin/python3 bench/step_vs_torch.py "$1" --driver $build_dir/bench/bench_train_step "${@:2}"
    say "the same, alone and beside a process that keeps one core busy"
    /usr/bin/python3 bench/company.py --peer "$1" --driver $build_dir/bench/bench_train_step
  fi
}

sources() { find src tests bench \( -name '*.h' -o -name '*.cc' \) -print 2>/dev/null; }

case ${1:-} in
  study) run_study "${@:2}" ;;
  test) run_tests "${@:2}" ;;
  build) build_program ;;
  doctor) build_program && $build_dir/paceline doctor "${@:2}" ;;
  bench) run_bench "${@:2}" ;;
  fmt)
    install fmt
    sources | xargs clang-format -i
    ;;
  check)
    install build test fmt
    say "format"
    sources | xargs clang-format --dry-run --Werror
    say "layers"
    python3 tools/check_layers
    python3 tools/sizes
    run_tests "${@:2}"
    ;;
  -h | --help | help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
