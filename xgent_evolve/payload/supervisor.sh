#!/bin/sh
# Runs one command inside a container and leaves an exit record; POSIX sh, no other interpreter.
#
# /xgent/plan.sh sets:
#   limit_s        wall time of the command, in seconds
#   first_output_s when the command has written nothing to stdout by then it is stopped; or empty
#   output_limit   bytes of stdout and of stderr that are kept, half of them from the end
#   credential_to  file that receives the credential from /xgent/secret/credential, or empty
#   stdin_from     file that becomes the command's standard input
# and defines two functions: prepare (before the command; a failure may set refused to the status
# that is recorded) and collect (after it).
# /xgent/command.sh is the command. /xgent/identity says which execution and container this is.
# /xgent/fault exists in tests only: an action and the point at which it is due.
#
# TERM cancels: the command ends as if its time were over, and what it left is kept.
#
# When somebody listens at the pipe /xgent/handover/export, what it leaves is written there too;
# it exits with 80 when all of it was taken, else with 0.
#
# In /xgent/ctl it leaves: token (taken before the command; a second start finds it and exits
# 87), stdout and stderr; for a longer output also stdout.tail (what followed, or its end) and
# stdout.dropped (bytes left out between them); whatever collect adds, and last of all record.

cancelled=
refused=
trap 'cancelled=1' TERM
ctl=/xgent/ctl
umask 022

point() { # name: dies or stops here when a test asks for it
    [ "$fault_at" = "$1" ] || return 0
    [ "$fault" = kill ] && kill -KILL $$
    while :; do sleep 3600; done
}
fault='' fault_at=''
[ ! -r /xgent/fault ] || read -r fault fault_at </xgent/fault

point token.before
if ! (set -C && : >"$ctl/token") 2>/dev/null; then
    exit 87
fi
sync "$ctl/token" 2>/dev/null
point token.after

first_output_s=
. /xgent/plan.sh

look_at_clock() { # leaves in now_cs hundredths of a second on a clock that nobody sets
    IFS=' .' read -r now_s now_f _ </proc/uptime
    now_f=${now_f#0}
    now_cs=$((now_s * 100 + ${now_f:-0}))
}

finish() { # status exit_code
    IFS= read -r identity </xgent/identity
    point record.before
    printf '%s,"status":"%s","exit_code":%s,"expired":%s,"started_cs":%s,"ended_cs":%s}\n' \
        "${identity%\}}" "$1" "$2" "$expired" "${started:-null}" "${ended:-null}" \
        >"$ctl/.record"
    sync "$ctl/.record" 2>/dev/null
    mv "$ctl/.record" "$ctl/record"
    sync "$ctl" 2>/dev/null
    point record.after
    ! hand_over || exit 80
    exit 0
}

hand_over() { # what lies in $ctl, to a listener on the host; false when that is not all of it
    [ -p /xgent/handover/export ] || return 1
    (
        set -- "$ctl"
        todo=1
        while [ "$todo" -gt 0 ]; do # the first so many are still to be looked at
            path=$1
            shift
            todo=$((todo - 1))
            if [ -d "$path" ] && [ ! -h "$path" ]; then
                todo=$((todo - $#))
                set -- "$path"/* "$path"/.[!.]* "$path"/..?* "$@"
                todo=$((todo + $#))
            elif [ -f "$path" ] && [ ! -h "$path" ]; then
                set -- "$@" "$path"
            fi
            [ "$#" -le 500 ] || exit 1
            case $path in *"
"*) exit 1 ;; esac
        done
        exec >/xgent/handover/export || exit 1
        cat "$@" && echo && wc -c "$@" && echo "$#"
    ) 2>/dev/null &
    giver=$!
    alarm 5
    await "$giver"
    silence
    [ "$code" = 0 ]
}

alarm() { # seconds: interrupts the next wait of this shell, instead of the alarm before
    silence
    rang=
    (
        sleep "$1"
        kill -USR1 $$ 2>/dev/null
    ) >/dev/null 2>&1 &
    alarm_pid=$!
}

silence() {
    [ -z "$alarm_pid" ] || kill -KILL "$alarm_pid" 2>/dev/null
    alarm_pid=
}

await() { # process: until it ends, the alarm rings or somebody cancels; leaves its code in code
    code=
    while [ -z "$rang" ] && [ -z "$cancelled" ]; do
        wait "$1"
        code=$?
        # A signal that interrupts the wait leaves the process there.
        kill -0 "$1" 2>/dev/null || return 0
    done
    return 1
}

# Output is read as it comes and never blocks the command: the first half of the limit into its
# file, and the rest in turn into two larger parts, of which the end is kept.

fill() { # file bytes: reads up to so many bytes into it; false at the end of the input
    left=$2
    while [ "$left" -gt 0 ]; do
        before=$left
        size=$((left < block ? left : block))
        blocks=$((left / size))
        said="$ctl/.said-${1##*/}"
        if dd bs="$size" count="$blocks" >>"$1" 2>"$said"; then
            # It counts whole and partial blocks; fewer than it may read are all that there were.
            IFS='+ ' read -r whole partial _ <"$said"
            case $whole$partial in
            '' | *[!0-9]*) ;;
            *)
                [ $((whole + partial)) -ge "$blocks" ] || at_end=1
                [ -z "$at_end" ] || return 1
                ;;
            esac
        fi
        size=$(wc -c <"$1") || return 1
        left=$(($2 - size))
        [ "$left" -lt "$before" ] || return 1
    done
}

capture() { # name: reads the pipe of that name
    (
        exec <"$ctl/.$1"
        at_end=
        if [ -z "$half" ]; then
            cat >"$ctl/$1"
        elif fill "$ctl/$1" "$half"; then
            turn=0
            while :; do
                turn=$((turn + 1))
                : >"$ctl/$1.part$((turn % 2))"
                echo "$turn" >"$ctl/.new$1"
                mv "$ctl/.new$1" "$ctl/.turn$1"
                fill "$ctl/$1.part$((turn % 2))" "$part" || break
            done
        fi
        # Whatever could not be kept, on a full disk for instance, is still read.
        [ -n "$at_end" ] || cat >/dev/null
    ) &
}

settle() { # name: makes the tail out of the last two parts
    [ -r "$ctl/.turn$1" ] || return 0
    read -r turn <"$ctl/.turn$1"
    new="$ctl/$1.part$((turn % 2))" old="$ctl/$1.part$(((turn + 1) % 2))"
    size=$(($(wc -c <"$new")))
    {
        [ "$turn" -eq 1 ] || [ "$size" -ge "$half" ] || tail -c $((half - size)) "$old"
        tail -c "$half" "$new"
    } >"$ctl/$1.tail"
    dropped=$(((turn - 1) * part + size - half))
    [ "$dropped" -le 0 ] || echo "$dropped" >"$ctl/$1.dropped"
    [ -s "$ctl/$1.tail" ] || rm -f "$ctl/$1.tail"
    rm -f "$new" "$old" "$ctl/.turn$1" "$ctl/.new$1"
}

stop_everything() { # until only this shell and init are left, so that the file system is quiet
    silence
    tries=0
    while [ "$tries" -lt 220 ]; do
        kill -KILL -1 2>/dev/null
        wait
        set -- /proc/[0-9]*
        [ "$#" -gt 2 ] || return 0
        tries=$((tries + 1))
        # What was killed needs a moment to be gone, most often a very short one.
        [ "$tries" -le 20 ] || sleep 0.02 2>/dev/null || sleep 1
    done
}

half=
block=65536
part=4194304
if command -v dd && command -v wc && command -v tail; then
    half=$((output_limit / 2 > 0 ? output_limit / 2 : 1))
    part=$((part > half ? part : half))
fi >/dev/null 2>&1

code=
rang=
alarm_pid=
expired=false
trap 'rang=1' USR1

if [ -n "$credential_to" ]; then
    (
        umask 077
        mkdir -p "${credential_to%/*}" && : >"$credential_to" || exit 1
        # A writer that died before it wrote leaves nothing; the next one is waited for.
        while [ ! -s "$credential_to" ]; do
            cat /xgent/secret/credential >"$credential_to" || exit 1
        done
    ) &
    reader=$!
    alarm 60
    await "$reader"
    silence
    [ -z "$cancelled" ] || finish cancelled null
    [ "$code" = 0 ] || finish no_credential null
fi

if ! prepare >"$ctl/prepare" 2>&1; then
    finish "${refused:-prepare_failed}" null
fi
[ -z "$cancelled" ] || finish cancelled null

mkfifo "$ctl/.stdout" "$ctl/.stderr"
capture stdout
out=$!
capture stderr
err=$!

look_at_clock
started=$now_cs
sh /xgent/command.sh <"$stdin_from" >"$ctl/.stdout" 2>"$ctl/.stderr" &
child=$!
status=ended
if [ -n "$first_output_s" ] && [ "$first_output_s" -lt "$limit_s" ]; then
    alarm "$first_output_s"
    if ! await "$child" && [ -n "$rang" ]; then
        if [ -s "$ctl/stdout" ]; then
            alarm $((limit_s - first_output_s))
        else
            status=silent
        fi
    fi
else
    alarm "$limit_s"
fi
if ! await "$child"; then
    [ -z "$rang" ] || [ "$status" = silent ] || expired=true
    [ -z "$cancelled" ] || [ "$expired" = true ] || status=cancelled
    # From here on it ends anyway, and being told again must not shorten what is granted.
    trap : TERM
    cancelled=
    kill -TERM "$child" 2>/dev/null
    alarm 2
    if ! await "$child"; then
        kill -KILL "$child" 2>/dev/null
        wait "$child"
        code=$?
    fi
fi
trap : TERM
exit_code=$code
point command.after
look_at_clock
ended=$now_cs

# What the command left behind gets a moment to end its output, then everything is stopped.
alarm 2
cancelled=
await "$out" && await "$err"
stop_everything
rm -f "$ctl/.stdout" "$ctl/.stderr"
settle stdout
settle stderr

collect >"$ctl/collect" 2>&1
finish "$status" "$exit_code"
