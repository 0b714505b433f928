//! The roles of the arguments of tools, by their names: what the tools of common agents and MCP servers call them.

use super::argument_role::ArgumentRole;

use ArgumentRole::{
    Body, Channel, Command, Folder, Headers, Host, Language, Method, Path, Pattern, Recipient, Refused, Route, SessionType, Text, Url,
};

/// Names with one role, separated by blanks. They are written as messages show them.
pub(super) type Names = (ArgumentRole, &'static str);

/// TABLE: texts that accompany calls of any tool.
pub(super) const ANY_TOOL: &[Names] = &[(
    Text,
    "description reason reasoning explanation justification purpose summary intent comment note notes label title thought thoughts \
     explanation_text task_progress user_message status_message tool_call_id call_id request_id correlation_id timeout timeout_ms \
     timeout_seconds session_id shell_id terminal_id process_id task_id security_risk risk wait_ms yield_time_ms",
)];

/// TABLE: tools that run commands.
pub(super) const COMMAND_TOOLS: &[Names] = &[
    (Command, "command"),
    (Folder, "cwd workdir work_dir working_directory working_dir current_directory exec_dir run_dir start_dir directory dir folder path"),
    (Language, "language lang"),
    (
        Refused,
        "args argv arguments env envs environment env_vars variables shell executable interpreter user stdin input code script cmd commands \
         command_line program source data host container image sudo root elevated privileged run_as as_root with_escalated_permissions require_escalated dangerously_disable_sandbox \
         disable_sandbox no_sandbox unsandboxed",
    ),
    (ArgumentRole::RefusedBut("use_default"), "sandbox_permissions"),
];

/// TABLE: tools that read or write files.
pub(super) const FILE_TOOLS: &[Names] = &[
    (
        Path,
        "file_path path image_path filepath filepaths file_paths paths file files filename filenames file_name file_names directory \
         directories dir dirs folder folders target target_file target_path target_directory new_path old_path destination dest dst \
         destination_path dest_path src source source_path source_file absolute_path relative_path relative_workspace_path abs_path \
         input_file output_file input_path output_path base_path base_dir root root_dir root_path \
         directory_path dir_path folder_path path_to_file notebook_path location resource uri url image image_url link link_path \
         symlink symlink_path rename_to move_to copy_to save_as include_path search_path",
    ),
    (Folder, "cwd workdir work_dir working_directory working_dir current_directory"),
    (Pattern, "pattern glob globs glob_pattern file_pattern file_glob include includes include_pattern include_patterns"),
    (
        Text,
        "exclude excludes exclude_pattern exclude_patterns ignore ignore_patterns ignore_globs content contents text new_str old_str new_string old_string new_text old_text insert_text file_text new_content old_content \
         replacement replace search find query regex regexp needle question prompt content_type mime_type edits view_range lines line_range \
         instruction instructions code_edit new_source cell_id cell_type",
    ),
    (Refused, "patch diff patches patch_text patch_content unified_diff changes diffs hunk hunks"),
];

/// TABLE: tools that fetch URLs, search, or drive a browser.
pub(super) const WEB_TOOLS: &[Names] = &[
    (
        Url,
        "url urls uri uris href page_url start_url target_url base_url image_url image_urls proxy endpoint link links source_url http_proxy \
         https_proxy proxy_url callback_url redirect_url webhook webhook_url src",
    ),
    (
        Method,
        "method http_method request_method verb http_verb x_http_method x_http_method_override x_method_override method_override methods",
    ),
    (
        Host,
        "host hostname server ip ip_address address authority origin remote remote_host forwarded_host x_forwarded_host connect_to resolve",
    ),
    (
        Body,
        "body data json form form_data payload post_data raw_body raw_data request_body json_body post_body multipart content post put patch \
         delete is_post post_fields fields form_fields xml graphql mutation variables bytes attachment attachments message urlencoded \
         json_data request_data raw raw_text input body_text text_body \
         body_json data_raw data_binary data_urlencode",
    ),
    (Headers, "headers header http_headers request_headers extra_headers"),
    (
        Refused,
        "script scripts code expression javascript js function output_file save_to save_path download_path output_path output file file_path \
         filename files upload uploads cookies_file actions steps socket unix_socket socket_path cert certificate ca ca_cert ca_bundle \
         client_cert key_file user_data_dir profile_dir download download_dir storage_state init_script js_code evaluate eval page_function \
         wait_for_function args argv forwarded content_length transfer_encoding upgrade connection trailer",
    ),
    (
        Text,
        "query queries q question prompt instruction instructions search search_query keywords keyword topic freshness date_range time_range extract_schema goal size color viewport license user_agent cookie cookies \
         accept accept_language",
    ),
];

/// TABLE: texts of tools that drive a browser: the parts of a page, and what is typed into them. What fetches has no such parts.
pub(super) const BROWSER_TOOLS: &[Names] = &[(Text, "text value selector ref element key keys")];

/// TABLE: names of domains to which a search is limited.
pub(super) const SEARCHED_DOMAINS: &[Names] = &[(Text, "site allowed_domains blocked_domains include_domains exclude_domains domains")];

/// TABLE: texts of tools of MCP servers: what is said, looked for or asked of an interface, which may look like a path.
pub(super) const MCP_TOOLS: &[Names] = &[
    (
        Text,
        "content contents text body message messages query queries q search search_query sql jql cql cypher graphql filter pattern regex \
         prompt instruction instructions question name names subject html markdown ref branch base head sha tag owner repo repository state \
         status labels expression selector value values data code script new_str old_str new_string old_string new_text old_text edits \
         xpath json_path locator css function key keys prefix suffix delimiter separator logql promql expr formula cron exclude excludes exclude_pattern \
         exclude_patterns ignore ignore_patterns log_group log_group_name log_group_names log_group_name_prefix log_stream_name",
    ),
    (Route, "endpoint route api_path method_path"),
];

/// TABLE: names of things among these texts, which a server may take for a place.
pub(super) const THINGS: [&str; 14] =
    ["base", "branch", "head", "labels", "name", "names", "owner", "ref", "repo", "repository", "script", "state", "status", "tag"];

/// TABLE: names of queries and programs among these texts, which may open what stands in quotes.
pub(super) const PROGRAMS: [&str; 11] =
    ["code", "cql", "cypher", "expr", "expression", "formula", "function", "queries", "query", "script", "sql"];

/// TABLE: tools that send messages.
pub(super) const MESSAGE_TOOLS: &[Names] = &[
    (
        Recipient,
        "recipient recipients to target targets cc bcc chat chat_id user user_id username email emails phone phone_number address receiver \
         receivers forward_to copy_to recipient_id recipient_ids receiver_id target_id to_user to_user_id to_email to_number to_address users \
         user_ids chat_ids contact contacts member members handle destination destinations webhook webhook_url hook_url incoming_webhook",
    ),
    (Channel, "channel channel_id channel_ids channels channel_name room room_id rooms group group_id groups conversation conversation_id"),
    (
        Text,
        "message text content subject body html markdown callback_data format type message_type parse_mode priority action caption topic content_type \
         mime_type reply_to_message_id message_id thread_ts color tags",
    ),
    // Each of their parts is judged by its own name.
    (Body, "blocks attachments"),
    // They say by which server a message goes.
    (
        Refused,
        "smtp_host smtp_server smtp_url smtp_port relay server endpoint api_url api_base base_url target_url queue_url topic_arn proxy proxy_url",
    ),
];

/// TABLE: tools that start agents.
pub(super) const SESSION_TOOLS: &[Names] = &[
    (
        SessionType,
        "session_type subagent_type agent_type agent agent_name subagent subagent_name type kind agent_kind session_kind agent_id agent_role \
         subagent_role role persona profile preset worker assistant",
    ),
    (
        Text,
        "prompt task goal context instruction instructions message name model query tools toolsets isolation effort run_in_background background \
         resume max_turns max_steps max_iterations max_tokens temperature",
    ),
    // They name the program that the agent is.
    (Refused, "acp_command acp_args command args argv program executable binary env environment mcp_servers"),
];
