#!/usr/bin/env python3
"""Writes xgent_evolve/payload/seccomp.json: the system calls of a container that runs Codex.

    scripts/seccomp_profile.py > xgent_evolve/payload/seccomp.json

Everything that is not listed is refused. The lists are, by purpose, what the engine's own default
allows a process without capabilities (Docker 20.10 to 28), less a few that programs of a task have
no use for here, plus the calls by which bubblewrap makes the sandbox of the agent's shell. A test
compares the file with this script, and removes each of the sandbox's calls to see it fail.
"""

from __future__ import annotations

import json
import sys

type Rule = dict[str, object]

EVERYDAY = {
    "open, read and write": """
        close close_range copy_file_range creat dup dup2 dup3 eventfd eventfd2 fallocate fadvise64
        fadvise64_64 fcntl fcntl64 fdatasync flock fsync ftruncate ftruncate64 ioctl lseek _llseek
        open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read
        readahead readv sendfile sendfile64 splice sync sync_file_range sync_file_range2 syncfs tee
        truncate truncate64 vmsplice write writev arm_fadvise64_64 arm_sync_file_range""",
    "names, attributes and directories": """
        access cachestat chdir chmod chown chown32 faccessat faccessat2 fchdir fchmod fchmodat
        fchmodat2 fchown fchown32 fchownat fgetxattr flistxattr fremovexattr fsetxattr fstat
        fstat64 fstatat64 fstatfs fstatfs64 futimesat getcwd getdents getdents64 getxattr
        getxattrat lchown lchown32 lgetxattr link linkat listxattr listxattrat llistxattr
        lremovexattr lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat newfstatat readlink
        readlinkat removexattr removexattrat rename renameat renameat2 rmdir setxattr setxattrat
        stat stat64 statfs statfs64 statx symlink symlinkat umask unlink unlinkat utime utimensat
        utimensat_time64 utimes""",
    "watching": """
        epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait
        epoll_wait_old inotify_add_watch inotify_init inotify_init1 inotify_rm_watch _newselect
        poll ppoll ppoll_time64 pselect6 pselect6_time64 select io_cancel io_destroy io_getevents
        io_pgetevents io_pgetevents_time64 io_setup io_submit""",
    "memory": """
        brk madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock mlock2
        mlockall mmap mmap2 mprotect mremap mseal msync munlock munlockall munmap pkey_alloc
        pkey_free pkey_mprotect remap_file_pages cacheflush""",
    "processes and threads": """
        arch_prctl capget capset execve execveat exit exit_group fork futex futex_requeue
        futex_time64 futex_wait futex_waitv futex_wake get_robust_list get_thread_area getcpu
        getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getpgid getpgrp
        getpid getppid getpriority getresgid getresgid32 getresuid getresuid32 getrlimit getrusage
        getsid gettid getuid getuid32 ioprio_get ioprio_set landlock_add_rule
        landlock_create_ruleset landlock_restrict_self pidfd_open prctl prlimit64 process_mrelease
        restart_syscall rseq seccomp set_robust_list set_thread_area set_tid_address set_tls
        setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setpgid
        setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid
        setreuid32 setrlimit setsid setuid setuid32 sysinfo ugetrlimit uname vfork wait4 waitid
        waitpid breakpoint""",
    "scheduling": """
        sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
        sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64
        sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield""",
    "signals": """
        kill pause pidfd_send_signal rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
        rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo
        sigaltstack signalfd signalfd4 sigprocmask sigreturn tgkill tkill""",
    "time": """
        adjtimex alarm clock_adjtime clock_adjtime64 clock_getres clock_getres_time64
        clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 getitimer
        gettimeofday nanosleep setitimer time timer_create timer_delete timer_getoverrun
        timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create
        timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times""",
    "talking to other processes": """
        accept accept4 bind connect getpeername getsockname getsockopt ipc listen mq_getsetattr
        mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64
        mq_unlink msgctl msgget msgrcv msgsnd recv recvfrom recvmmsg recvmmsg_time64 recvmsg
        semctl semget semop semtimedop semtimedop_time64 send sendmmsg sendmsg sendto setsockopt
        shmat shmctl shmdt shmget shutdown socketcall socketpair""",
    "chance": "getrandom",
}
"""Calls by purpose, for both architectures and their 32-bit forms."""

LEFT_OUT = {
    "io_uring_enter io_uring_register io_uring_setup": "operations that no filter sees",
    "kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace": (
        "the driver with the credential is a process of the same user"
    ),
    "fanotify_mark name_to_handle_at": "of no use without calls that need a capability",
    "modify_ldt": "emulators of old systems alone",
}
"""What the engine's default allows, at least in some version, and why it is refused here."""

SANDBOX = ("mount", "pivot_root", "umount2")
"""What bubblewrap needs beyond that; in its own user namespace, since there is no capability."""
SANDBOX_NAMESPACES = 0x78020000  # of mounts, IPC, users, processes and network, all at once
SANDBOX_UNSHARES = 0x10000000  # a second namespace of users, in which it gives up its rights
NAMESPACES = 0x7E020000  # every flag of clone that makes a namespace

NO_SUCH_CALL = 38  # ENOSYS; the C library then uses the older call
VIRTUAL_MACHINE_SOCKETS = 40  # AF_VSOCK leads to the hypervisor
PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)  # Linux, 32 bits, UNAME26, and the query


def allowed(names: list[str], **condition: object) -> Rule:
    """Return a rule that allows calls, always or under one condition on an argument."""
    rule: Rule = {"names": sorted(names), "action": "SCMP_ACT_ALLOW"}
    return {**rule, "args": [{"index": 0, **condition}]} if condition else rule


def profile() -> dict[str, object]:
    """Return the whole profile."""
    names = [name for group in EVERYDAY.values() for name in group.split()]
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "archMap": [
            {
                "architecture": "SCMP_ARCH_X86_64",
                "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"],
            },
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]},
        ],
        "syscalls": [
            allowed([*names, *SANDBOX]),
            # Processes and threads in no new namespace, and the sandbox with exactly its own.
            *(
                allowed(["clone"], value=NAMESPACES, valueTwo=flags, op="SCMP_CMP_MASKED_EQ")
                for flags in (0, SANDBOX_NAMESPACES)
            ),
            allowed(["unshare"], value=SANDBOX_UNSHARES, op="SCMP_CMP_EQ"),
            # Its flags lie in memory that no filter can read.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": NO_SUCH_CALL},
            allowed(["socket"], value=VIRTUAL_MACHINE_SOCKETS, op="SCMP_CMP_NE"),
            *(allowed(["personality"], value=value, op="SCMP_CMP_EQ") for value in PERSONALITIES),
        ],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(profile(), indent=1) + "\n")
