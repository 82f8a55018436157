# Lists the instructions and skills that Codex finds, from inside the container, and holds them
# against the plan; sourced by the supervisor's plan before the command, so before anything is paid.
#
# Variables: work (working directory), from_image (whether its files are the image's and not
# planned), codex_home, credential (never read), expected (the plan, one line each), skills (names
# under study, one line each), listing (file that receives every line).
#
# A line is a SHA-256, "link" or "special", two spaces and a path. Prints the findings, and sets
# refused to contaminated or skill_not_visible when it returns false.

newline='
'

hashes=1
if ! command -v sha256sum >/dev/null; then
    hashes=
    sha256sum() { for file; do echo "unhashed  $file"; done; }
fi

searched=1
command -v find >/dev/null || searched=

walk() { # place: everything below it, or the place itself
    if [ -L "$1" ]; then
        echo "link  $1"
        return
    fi
    if [ ! -d "$1" ]; then
        [ ! -f "$1" ] || sha256sum "$1"
        return
    fi
    place=$1
    set --
    for item in "$place"/* "$place"/.[!.]* "$place"/..?*; do
        if [ "$item" = "$credential" ]; then
            continue
        elif [ -L "$item" ]; then
            echo "link  $item"
        elif [ -f "$item" ]; then
            set -- "$@" "$item"
        elif [ -d "$item" ]; then
            walk "$item"
        elif [ -e "$item" ]; then
            echo "special  $item"
        fi
    done
    [ $# -eq 0 ] || sha256sum "$@"
}

nested() { # instruction files below the working directory, which no catalogue names
    [ -n "$searched" ] || return 0
    find "$work" -name .git -prune -o -path "$work/.codex" -prune -o -path "$work/.agents" -prune \
        -o \( -name AGENTS.md -o -name AGENTS.override.md \) -path "$work/*/*" -type f \
        -exec sha256sum {} +
}

look() {
    walk /etc/codex
    walk "${codex_home%/*}"
    walk "$work/.codex"
    walk "$work/.agents"
    walk "$work/AGENTS.md"
    walk "$work/AGENTS.override.md"
    nested
}

title() { # file: the name in a skill's header
    while read -r key value; do
        if [ "$key" = name: ]; then
            value=${value#[\"\']}
            echo "${value%[\"\']}"
            return
        fi
    done <"$1"
}

has_line() { # lines line
    case "$newline$1$newline" in *"$newline$2$newline"*) return 0 ;; esac
    return 1
}

is_planned() { # line
    has_line "$planned" "$1" && return 0
    [ "$from_image" = 1 ] || return 1
    # The image's own files are the case's background; another configuration is none.
    case "${1#*  }" in "$work/.codex" | "$work/.agents") return 1 ;; "$work"/*) return 0 ;; esac
    return 1
}

is_rival() { # path: a skill under study that lies somewhere else than where it is installed
    case "$1" in */SKILL.md) ;; *) return 1 ;; esac
    case "$1" in /etc/codex/skills/*) return 1 ;; esac
    directory=${1%/SKILL.md}
    has_line "$skills" "${directory##*/}" || has_line "$skills" "$(title "$1")"
}

visible() {
    found=$(look)
    printf '%s\n' "$found" >"$listing"
    planned=
    while IFS= read -r line; do
        case "$hashes:$line" in 1:* | :link\ *) ;; *) line="unhashed  ${line#*  }" ;; esac
        planned="$planned$newline$line"
    done <"$expected"
    verdict=
    while IFS= read -r line; do
        if [ -n "$line" ] && ! is_planned "$line"; then
            verdict="$verdict${newline}extra  $line"
        elif is_rival "${line#*  }"; then
            verdict="$verdict${newline}rival  $line"
        fi
    done <<END
$found
END
    missing=
    while IFS= read -r line; do
        case "$searched${line#*  }" in
        "$work/.codex/"* | "$work/.agents/"*) ;;
        "$work"/*/*) continue ;; # nothing looked there
        esac
        [ -z "$line" ] || has_line "$found" "$line" || missing="$missing${newline}missing  $line"
    done <<END
$planned
END
    [ -n "$verdict$missing" ] || return 0
    printf '%s\n' "${verdict#"$newline"}${missing}"
    refused=contaminated
    [ -n "$verdict" ] || refused=skill_not_visible
    return 1
}
