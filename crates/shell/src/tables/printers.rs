//! Programs with the words and options that make them print secrets by their nature.

/// TABLE: programs with the words that make them print secrets, wherever options stand between.
pub const COMMANDS: &[(&str, &str)] = &[
    ("ansible-vault", "decrypt | view"),
    (
        "aws",
        "configure export-credentials | configure get | ecr get-login-password | eks get-token | kms decrypt | rds \
         generate-db-auth-token | secretsmanager batch-get-secret-value | secretsmanager get-secret-value | ssm get-parameter | \
         ssm get-parameters | ssm get-parameters-by-path | sts assume-role | sts get-session-token",
    ),
    ("az", "account get-access-token | keyvault secret show | acr login"),
    ("bw", "get"),
    ("chamber", "export | list | read"),
    ("doctl", "auth token"),
    ("doppler", "secrets"),
    ("dotnet", "user-secrets list"),
    ("fly flyctl", "auth token"),
    (
        "gcloud",
        "auth application-default print-access-token | auth print-access-token | auth print-identity-token | config config-helper \
         | secrets versions access",
    ),
    ("gh", "auth token"),
    ("git", "credential fill | credential-cache get | credential-store get"),
    ("glab", "config get"),
    ("gradle gradlew", "properties"),
    ("helm", "env | get all | get hooks | get manifest | get values"),
    ("heroku", "auth:token | config | config:get"),
    ("infisical", "export | secrets"),
    ("kubectl", "create token"),
    ("lpass", "show"),
    ("netlify", "env:get | env:list"),
    ("npm", "run env | token list | run-script env | rum env | urn env"),
    ("oc", "create token | whoami"),
    ("op", "inject | item get | read"),
    ("pass", "show"),
    ("pip", "config debug | config get | config list"),
    ("pnpm", "config get | config list | run env"),
    ("pulumi", "stack export"),
    ("secret-tool", "lookup | search"),
    ("security", "find-generic-password | find-internet-password"),
    ("sops", "decrypt"),
    ("systemctl", "show-environment"),
    ("terraform tofu", "state pull"),
    ("vault", "kv get | print token | read | token lookup | token create"),
    ("vercel", "env pull"),
    ("yarn", "config get | config list | env | run env"),
];

/// TABLE: programs with a word and an option, in its forms, that together make them print secrets.
pub const OPTIONS: &[(&str, &str, &[&str])] = &[
    ("gh glab", "auth", &["-t", "--show-token"]),
    ("gpg", "", &["--export-secret-keys", "--export-secret-subkeys"]),
    ("helm", "status", &["-o", "--output"]),
    ("kubectl", "view", &["--raw"]),
    ("gmake make", "", &["-p", "--print-data-base"]),
    ("podman", "inspect", &["--showsecret"]),
    ("sops", "", &["-d", "--decrypt"]),
    ("terraform tofu", "output", &["-json", "-raw", "--json", "--raw"]),
    ("terraform tofu", "show", &["-json", "--json"]),
];
