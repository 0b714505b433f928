//! TABLE: names of programs that may be shown in a message.
//!
//! A message does not repeat a command line, which can hold anything. But that `curl` is not allowed tells no secret.

use super::tables;

/// The names of well-known programs that have no row in `programs.txt`.
const PROGRAMS: &str = "ab ack addgroup adduser age apropos arp biome black blkid brctl browser-sync buf cabal cfdisk chattr chgrp chmod \
     chown chsh clang-format clear cp cryptsetup cypress dig dir dmesg esbuild fdisk firefox flake8 flutter fsck fuser fzf getent getfacl \
     groupadd groupdel halt host hostnamectl htop ifconfig insmod iptables isort javac k9s killall kustomize last ldconfig lighttpd ln \
     locate logger login losetup lsattr lsmod lsof minikube mkdir mkfifo mkfs mkfs.ext4 mknod mktemp modprobe mount mv mypy netstat nginx \
     nmap nslookup objdump parted passwd pgrep ping pkg pkill pm2 poweroff prisma pylint python2 python3 rails readelf reboot reset rmmod \
     ruff setfacl shellcheck shred shutdown ss ssh-add strip stty swapoff swapon sync sysctl top touch traceroute truncate turbo udevadm \
     ufw umount useradd userdel usermod uuidgen vault w wipefs write";

/// Returns whether the name is that of a well-known program.
#[must_use]
pub fn is_well_known(name: &str) -> bool {
    tables::has_row(name) || tables::is_in(PROGRAMS, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_made_up() {
        assert!(is_well_known("rm") && is_well_known("git") && is_well_known("vim") && !is_well_known("hunter2") && !is_well_known("git2"));
        assert!(PROGRAMS.split(' ').all(|name| !tables::has_row(name)), "such a name stands in two tables");
    }
}
