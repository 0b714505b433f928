//! TABLE: names of programs that may be shown in a message.
//!
//! A message does not repeat a command line, which can hold anything. But that `curl` is not allowed tells no secret.

/// The names, sorted.
#[rustfmt::skip]
const PROGRAMS: &[&str] = &[
    "7z", "ab", "ack", "addgroup", "adduser", "ag", "age", "ansible", "ansible-playbook", "apk", "apropos", "apt", "apt-cache", "apt-get",
    "ar", "arch", "arp", "ash", "at", "awk", "aws", "az", "b2sum", "base32", "base64", "basename", "bash", "batch", "bazel", "bc", "bg",
    "biome", "black", "blkid", "brctl", "brew", "browser-sync", "buf", "bun", "bundle", "bunx", "busybox", "bzip2", "cabal", "cal",
    "cargo", "cat", "cc", "cd", "cfdisk", "chattr", "chgrp", "chmod", "chown", "chroot", "chrt", "chsh", "cksum", "clang", "clang++",
    "clang-format", "clear", "cmake", "cmp", "code", "column", "comm", "command", "composer", "conda", "cp", "cpio", "crontab",
    "cryptsetup", "csh", "csplit", "curl", "cut", "cypress", "dash", "date", "dd", "deno", "df", "diff", "dig", "dir", "dirname", "dmesg",
    "dnf", "doas", "docker", "docker-compose", "dotnet", "dpkg", "du", "echo", "ed", "egrep", "elixir", "emacs", "env", "erl", "esbuild",
    "eslint", "eval", "ex", "exec", "exit", "expand", "export", "expr", "false", "fd", "fdisk", "fg", "fgrep", "file", "find", "firefox",
    "fish", "flake8", "flock", "flutter", "fmt", "fold", "free", "fsck", "fuser", "fzf", "g++", "gawk", "gcc", "gcloud", "gdb", "gem",
    "getent", "getfacl", "gh", "git", "glab", "go", "gofmt", "gpg", "gradle", "grep", "groupadd", "groupdel", "groups", "gunzip", "gzip",
    "halt", "hash", "head", "heroku", "hexdump", "history", "host", "hostname", "hostnamectl", "htop", "http", "id", "ifconfig", "insmod",
    "install", "ionice", "ip", "iptables", "isort", "java", "javac", "jest", "jobs", "join", "journalctl", "jq", "julia", "k9s", "kill",
    "killall", "ksh", "kubectl", "kustomize", "last", "ldconfig", "ldd", "less", "lighttpd", "ln", "local", "locate", "logger", "login",
    "losetup", "ls", "lsattr", "lsblk", "lscpu", "lsmod", "lsof", "ltrace", "lua", "make", "man", "mariadb", "mawk", "md5sum", "meson",
    "minikube", "mkdir", "mkfifo", "mkfs", "mkfs.ext4", "mknod", "mktemp", "mocha", "modprobe", "mongo", "mongosh", "more", "mount", "mv",
    "mvn", "mypy", "mysql", "mysqldump", "nano", "nc", "ncat", "netcat", "netstat", "nginx", "nice", "ninja", "nix", "nix-shell", "nl",
    "nm", "nmap", "node", "nodejs", "nohup", "npm", "npx", "nslookup", "numactl", "nvim", "objdump", "od", "openssl", "parted", "passwd",
    "paste", "patch", "perl", "pg_dump", "pgrep", "php", "ping", "pip", "pip3", "pipenv", "pipx", "pkexec", "pkg", "pkill", "pm2", "pnpm",
    "podman", "poetry", "popd", "poweroff", "prettier", "printenv", "printf", "prisma", "ps", "psql", "pushd", "pwd", "pylint", "pytest",
    "python", "python2", "python3", "rails", "rake", "read", "readelf", "readlink", "realpath", "reboot", "redis-cli", "reset", "rg",
    "rm", "rmdir", "rmmod", "rpm", "rsync", "ruby", "ruff", "runuser", "rustc", "rustup", "sbt", "scala", "scp", "screen", "script",
    "sed", "seq", "service", "setfacl", "setsid", "sftp", "sh", "sha1sum", "sha256sum", "sha512sum", "shasum", "shellcheck", "shred",
    "shuf", "shutdown", "sleep", "snap", "socat", "sort", "source", "split", "sqlite3", "ss", "ssh", "ssh-add", "ssh-agent",
    "ssh-copy-id", "ssh-keygen", "stat", "stdbuf", "strace", "strings", "strip", "stty", "su", "sudo", "swapoff", "swapon", "swift",
    "sync", "sysctl", "systemctl", "systemd-run", "tac", "tail", "tar", "taskset", "tcpdump", "tcsh", "tee", "telnet", "terraform",
    "test", "time", "timeout", "tmux", "top", "touch", "tox", "tr", "traceroute", "trap", "tree", "true", "truncate", "ts-node", "tsc",
    "tty", "turbo", "type", "udevadm", "ufw", "ulimit", "umask", "umount", "unalias", "uname", "unexpand", "uniq", "unset", "unshare",
    "unxz", "unzip", "uptime", "useradd", "userdel", "usermod", "uuidgen", "uv", "uvx", "vagrant", "valgrind", "vault", "vi", "vim",
    "visudo", "vite", "vitest", "w", "wait", "watch", "wc", "webpack", "wget", "whereis", "which", "who", "whoami", "wipefs", "write",
    "xargs", "xxd", "xz", "yarn", "yes", "yq", "yum", "zcat", "zip", "zsh", "zstd",
];

/// Returns whether the name is that of a well-known program.
#[must_use]
pub fn is_well_known(name: &str) -> bool {
    PROGRAMS.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(PROGRAMS.is_sorted() && PROGRAMS.len() > 300);
        assert!(is_well_known("rm") && is_well_known("git") && !is_well_known("hunter2"));
    }
}
