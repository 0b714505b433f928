//! Cases for words, globs and patterns that name secrets.

use super::*;

#[test]
fn words_that_hold_a_secret_place_are_found() {
    for word in ".env ./.env.local .env.example.local .ssh/.env.example ~/.ssh/id_rsa /root/.ssh --key=~/.ssh/x if=/etc/shadow @.netrc \
        file=@.env host:.aws/config /etc/x:y/../shadow ~/.ssh:/keys a,server.pem,b -f.env -xfcredentials ../../../etc/shadow \
        ~/../../etc/shadow /var/run/../etc/shadow /var/run/secrets/token /private/etc/master.passwd etc/shadow /ETC/Shadow- \
        /proc/1/environ ~/.bash_history /home/u/.zsh_history infra/terraform.tfstate.backup --config=kubeconfig ~/.m2/settings.xml"
        .split_ascii_whitespace()
    {
        assert!(secret_word(word), "{word}");
    }
    for word in [
        "",
        "-",
        "a=b",
        "src/main.rs",
        "a/.env.example",
        "environment",
        "keys.rs",
        "-la",
        "--color=auto",
        "HEAD~1",
        "user@host:dir",
        "/etc/hosts",
        "--kubeconfig",
        "settings.xml",
        "main.tf",
    ] {
        assert!(!secret_word(word), "{word}");
    }
}

#[test]
fn words_that_hold_another_name_are_found() {
    for word in ["/proc/self/root/x", "if=/proc/1/cwd/x", "~root", "--home=~bob/x", "x:~+", "-f/dev/fd/3", "@/proc/self/environ"] {
        assert!(other_name_word(word), "{word}");
    }
    for word in ["HEAD~1", "s,~a,b,", "~/x", "x=~/y", "pkg~=1.2", "/proc/meminfo", "/dev/stderr"] {
        assert!(!other_name_word(word), "{word}");
    }
}

#[test]
fn globs_that_could_be_a_secret_place_are_found() {
    for glob in "~/.s*/i* .e* .* .??* /etc/sh* /e*/s?adow /etc/* /*/* /**/shadow etc/sh* ../../etc/sh* /etc/*/../shadow \
        /var/run/../etc/sh* i* id_* cred* *.p?m a*.pe* a_c*n ????? *.[pk]e[my] dir/.n*rc .config/* .con*/gcl* /proc/*/environ \
        /proc/*/root/etc/x /p*/s*lf/cwd/x /proc/[0-9]*/fd/1 /dev/f* */sh* /var/run/secr*/x --file=.e* [.]env .[e]nv */.ss?/*"
        .split_ascii_whitespace()
    {
        assert!(secret_glob(glob), "{glob}");
    }
}

#[test]
fn patterns_find_a_dot_by_any_wildcard() {
    for pattern in "?ss? [!a]aws [+-z]aws [x.]aws *ssh ?ssh/known_hosts */?ss[h]/* ?kube *.npmrc **.env.local *?npmrc *[.]pgpass \
        *env *nv.local *env* *v *etrc *local *test* *_x.?o"
        .split(' ')
    {
        assert!(secret_pattern(pattern), "{pattern}");
    }
    for pattern in
        "?ource [a-z]*.py src/*/x ?akefile [Mm]akefile *.test.ts *.d.ts *_test.go *Controller.java test_* src/*_test.py".split(' ')
    {
        assert!(!secret_pattern(pattern), "{pattern}");
    }
}

#[test]
fn globs_over_ordinary_files_are_no_secrets() {
    for glob in "./*.py src/*.rs * src/* **/*.rs *.[ch] test* tests/test_*.py *.txt *.json build/*.o /work/* */* */*/*.py package*.json \
        */*.md src/** /tmp/*.log /etc/*.conf file?.txt lib*.so *.tar.gz ~/work/*.py ../*.toml data-[0-9].csv \
        test_* README.* src/out-* a/app-2026-*"
        .split_ascii_whitespace()
    {
        assert!(!secret_glob(glob), "{glob}");
    }
}
