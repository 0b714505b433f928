//! Cases for the commands that print secrets.

use super::*;

fn prints(line: &str) -> bool {
    let words = crate::literal_words(line).unwrap();
    let arguments: Vec<Argument> = words.iter().skip(1).map(Argument::known).collect();
    prints_secrets(&words[0], &arguments)
}

#[test]
fn commands_that_print_secrets_are_known() {
    for line in [
        "env",
        "env A=1",
        "env -u A",
        "printenv",
        "printenv GITHUB_TOKEN",
        "export",
        "export -p",
        "declare -p",
        "ps e",
        "ps auxe",
        "ps -E",
        "ps -o pid,stat e",
        "ps -opid,stat e",
        "ps axeU0",
        "ps ep1",
        "awk 'BEGIN{print ENVIRON[\"X\"]}'",
        "flock x printenv TOKEN",
        "jq env",
        "jq -n '$ENV.X'",
        "jq '[env]'",
        "jq -n 'env.PATH'",
        "jq '.a | env'",
        "jq -n -- '-1,env' x",
        "npm run -w web env",
        "npm config --location user get //registry.npmjs.org/:_authToken",
        "helm get -n x values r",
        "yq -n 'strenv(X)'",
        "kubectl get secret x -o yaml",
        "kubectl get -Aojson pods,secrets",
        "kubectl get secret/x --template='{{.data}}'",
        "kubectl get -f x -o yaml",
        "kubectl config view --raw",
        "git config --list",
        "git -C x config -l",
        "git config http.extraheader",
        "git config --get credential.helper",
        "git var -l",
        "gh auth token",
        "gh auth status --show-token",
        "npm config get //registry.npmjs.org/:_authToken",
        "aws --profile x configure get aws_secret_access_key",
        "helm get values x",
        "systemctl show x",
        "systemctl show -p Environment x",
        "terraform output password",
        "vault kv get x",
        "python3 -m pip config list",
        "pip3.11 config list",
        "jq -n '$ ENV'",
        "yq env",
        "kubectl get --raw=/api/v1/namespaces/x/secrets",
        "git config --default user.name http.extraheader",
    ] {
        assert!(prints(line), "{line}");
    }
}

#[test]
fn commands_that_print_secrets_of_containers_are_known() {
    for line in [
        "docker inspect -f '{{.State}}' -f '{{.Config.Env}}' x",
        "docker inspect -f '{{printf \"}}%v\" .Config.Env}}' x",
        "docker inspect -f '{{`}}`}}{{.Name}} {{\"}}\" | print .Config.Env}}' x",
        "docker run --rm -e TOKEN alpine env",
        "docker run -ite TOKEN alpine env",
        "podman run --env-host alpine env",
        "docker run -eTOKEN alpine env",
        "docker run --name x --env=TOKEN alpine env",
        "docker exec -w /app -e TOKEN web env -u x",
        "docker compose run -e TOKEN web npm test",
        "docker build -t x --build-arg TOKEN .",
        "docker build . --secret id=x,env=TOKEN",
        "docker build . --secret id=x,ENV=TOKEN,src=y",
        "docker build . --secret id=x,type=env,src=TOKEN",
        "docker inspect -- -f '{{.State}}' x",
        "docker image inspect --format '{{.Config.Env}}' x",
        "docker inspect -f '{{with .Config}}{{.Env}}{{end}}' x",
        "docker inspect -f '{{$c := .Config}}{{$c}}' x",
        "docker compose config",
        "docker compose -f x.yml --profile dev config",
        "docker-compose -p x config",
        "docker compose exec web env",
        "docker --context x inspect y",
    ] {
        assert!(prints(line), "{line}");
    }
}

#[test]
fn what_is_not_known_may_be_a_secret() {
    // `*` stands for what the line computes.
    let prints = |line: &str| {
        let argument = |word: &str| match word.contains('*') {
            true => Argument { certainty: Certainty::Operand, ..Argument::known(word) },
            false => Argument::known(word),
        };
        let arguments: Vec<Argument> = line.split(' ').skip(1).map(argument).collect();
        prints_secrets(line.split(' ').next().unwrap(), &arguments)
    };
    for line in [
        "ps *",
        "ps a*",
        "ps -p 1 *",
        "ps --forest *",
        "kubectl get -o yaml *",
        "kubectl get -o yaml sec*",
        "kubectl -n get get -o yaml *",
        "kubectl get pod/* -o yaml",
        "systemctl show -p E* x",
        "systemctl show --property=* x",
        "docker inspect --format={{.State}}* x",
        "git config get *",
        "git config http*",
        "gh pr view 1 -q .*",
        "gh pr view 1 --jq=*",
        "gh auth t*",
        "npm config get *",
    ] {
        assert!(prints(line), "{line}");
    }
    for line in [
        "ps -p *",
        "ps --pid *",
        "kubectl get pod * -o yaml",
        "kubectl get -n * pods -o yaml",
        "kubectl logs *",
        "systemctl show -p ActiveState *",
        "docker inspect -f {{.State}} *",
        "docker exec * ls",
        "git config user.name *",
        "git config remote.*.url",
        "gh pr view * --json title -q .title",
        "helm status *",
    ] {
        assert!(!prints(line), "{line}");
    }
}

#[test]
fn commands_that_leave_secrets_out_are_known() {
    for line in [
        "env LANG=C ls",
        "printenv PATH",
        "export LANG=C",
        "ps aux",
        "ps -ef",
        "ps -C node",
        "ps axo pid,etime",
        "ps -o pid,time",
        "awk '{print $1}' x",
        "jq .env x",
        "jq '.a.env.b' x",
        "jq '{env: .x}' x",
        "jq '.[\"env\"]' x",
        "jq --arg x y '$env' z",
        "kubectl get secrets",
        "kubectl get secret x -o name",
        "kubectl get pods -o yaml",
        "kubectl config view",
        "docker inspect -f '{{.State.Status}}' x",
        "docker inspect -f '{{.Name}}: {{.State.Status}}\\n' x",
        "docker run --rm -e TOKEN=x -e HOME -p 80:80 alpine ls",
        "docker run -it alpine grep -e TOKEN x",
        "docker exec web grep -e TOKEN x",
        "docker build -t app --build-arg VERSION=1 --secret id=x,src=y .",
        "docker inspect --format='{{json .State}}' x",
        "docker inspect -f '{{.Config.Image}}' x",
        "docker inspect -f '{{range .Mounts}}{{.Source}}{{end}}' x",
        "docker network inspect x",
        "docker compose config --services",
        "docker compose -f x.yml up config",
        "npm run -w web build env",
        "git config user.name",
        "git config --get remote.origin.url",
        "git log -l 5",
        "gh pr view 1",
        "npm config get registry",
        "systemctl show -p ActiveState x",
        "terraform output",
        "helm list",
    ] {
        assert!(!prints(line), "{line}");
    }
}
