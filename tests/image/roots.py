"""Makes the folders in which the stages run: a Debian with Rust's compiler, and the base that the image is put on."""

import os
import pathlib
import shutil
import subprocess

MIRROR = "http://deb.debian.org/debian"

# What `gcr.io/distroless/cc-debian13` is made of, by its own lists: the packages of static, base and cc. ca-certificates gives one file.
BASE_PACKAGES = {
    "gcr.io/distroless/cc-debian13:nonroot": (
        "trixie",
        ["base-files", "netbase", "tzdata", "media-types", "libc6", "libssl3t64", "libzstd1", "zlib1g", "libgomp1", "libstdc++6", "libgcc-s1"]
        + ["gcc-14-base"],
    )
}


def call(*words, **options):
    """Runs a command; its failure ends the proof."""
    return subprocess.run([str(word) for word in words], check=True, **options)


def output(*words, **options):
    """Returns what a command prints."""
    return call(*words, stdout=subprocess.PIPE, text=True, **options).stdout


def debian(release, place):
    """Makes a Debian as `rust:…-slim-RELEASE` has it, once: its packages are gcc, the C library's headers, authorities and wget."""
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        packages = "--include=ca-certificates,gcc,libc6-dev,wget"
        call("debootstrap", "--variant=minbase", packages, release, place / "root", MIRROR, stdout=subprocess.DEVNULL)
        (place / "ready").touch()
    return place / "root"


def toolchain(version):
    """Returns the folder of a Rust toolchain of this version. rustup brings one only if there is none: it would renew one that is in use."""
    found = subprocess.run(["rustc", f"+{version}", "--print", "sysroot"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if found.returncode != 0:
        call("rustup", "toolchain", "install", version, "--profile", "minimal", "--no-self-update")
    sysroot = output("rustc", f"+{version}", "--print", "sysroot").strip()
    is_version = output(f"{sysroot}/bin/rustc", "--version").split()[1]
    if is_version != version:
        raise SystemExit(f"rustc {version} was asked for, and {sysroot} has {is_version}")
    return pathlib.Path(sysroot)


def base(image, debian_root, place):
    """Puts together the image that the last stage begins from, out of the Debian packages that it is made of."""
    if image not in BASE_PACKAGES:
        raise SystemExit(f"{image}: list the packages of this base in tests/image/roots.py")
    release, packages = BASE_PACKAGES[image]
    if release not in (debian_root / "etc/debian_version").read_text() + (debian_root / "etc/os-release").read_text():
        raise SystemExit(f"the program is built on another Debian than {image} is made of")
    shutil.rmtree(place, ignore_errors=True)
    archives = debian_root / "var/cache/apt/archives"
    for file in archives.glob("*.deb"):
        file.unlink()
    call("chroot", debian_root, "apt-get", "update", stdout=subprocess.DEVNULL)
    call("chroot", debian_root, "sh", "-c", f"cd /var/cache/apt/archives && apt-get download {' '.join(packages)}", stdout=subprocess.DEVNULL)
    place.mkdir(parents=True)
    # Debian 13 has /bin and /lib as links into /usr.
    for name in ("bin", "sbin", "lib", "lib64"):
        (place / "usr" / name).mkdir(parents=True)
        (place / name).symlink_to(f"usr/{name}")
    versions = []
    for file in sorted(archives.glob("*.deb")):
        call("dpkg-deb", "--extract", file, place)
        versions.append(" ".join(output("dpkg-deb", "--show", "--showformat=${Package} ${Version}", file).split()))
    certificates = place / "etc/ssl/certs"
    certificates.mkdir(parents=True, exist_ok=True)
    shutil.copy(debian_root / "etc/ssl/certs/ca-certificates.crt", certificates)
    (place / "etc/passwd").write_text("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")
    (place / "etc/group").write_text("root:x:0:\nnonroot:x:65532:\n")
    (place / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    (place / "tmp").mkdir(mode=0o1777, exist_ok=True)
    for name in ("dev", "proc", "home/nonroot"):
        (place / name).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place / "usr/share/doc", ignore_errors=True)
    return versions


def size(place):
    """Returns how many bytes the files of a folder hold."""
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(place) for name in names)


def give_devices(root):
    """Mounts what an engine gives every container: /proc, a few devices, and the names of hosts."""
    call("mount", "-t", "proc", "proc", root / "proc")
    call("mount", "-t", "tmpfs", "tmpfs", root / "dev")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        (root / "dev" / name).touch()
        call("mount", "--bind", f"/dev/{name}", root / "dev" / name)
    (root / "dev/fd").symlink_to("/proc/self/fd")
    (root / "dev/shm").mkdir()
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
