{{/* What the schema cannot say: values that exclude or need each other. All faults are shown at once. */}}

{{- define "tollgate.checks" -}}
{{- $faults := list -}}
{{- range list "configChecks" "secretChecks" "accessChecks" "topicChecks" "scalingChecks" "podChecks" "serveChecks" -}}
{{- $faults = append $faults (include (printf "tollgate.%s" .) $ | trim) -}}
{{- end -}}
{{- with compact $faults -}}
{{- fail (printf "\n%s" (join "\n" . | replace "\n\n" "\n")) -}}
{{- end -}}
{{- end -}}

{{- define "tollgate.configChecks" }}
{{- if not (dig "kafka" "brokers" "" .Values.config) }}
config.kafka.brokers: found nothing; write the bootstrap addresses, such as kafka-1:9092,kafka-2:9092
{{- end }}
{{- if hasKey .Values.config "admin" }}
config.admin: the chart sets it for its probes; remove it and use admin.address and admin.port
{{- end }}
{{- if hasKey (default dict .Values.config.worker) "instance_id" }}
config.worker.instance_id: the chart sets it to each pod's name; remove it, since two pods of one name throw each other out of the group
{{- end }}
{{- end }}

{{/* Secrets that would stand in the ConfigMap. */}}
{{- define "tollgate.secretChecks" }}
{{- range $key := list "subject_key" "subject_keys" }}
{{- if dig "privacy" $key "" $.Values.config }}
config.privacy.{{ $key }}: a ConfigMap is no place for a secret; put it into a Secret and name that in privacy.subjectKey.existingSecret
{{- end }}
{{- end }}
{{- $plain := list "ssl.key.location" "sasl.oauthbearer.token.endpoint.url" }}
{{- range $property, $value := dig "kafka" "properties" dict .Values.config }}
{{- $isSecret := regexMatch "password|passphrase|private\\.key|secret|sasl\\.jaas|ssl\\.key|token|sasl\\.oauthbearer\\.config" $property }}
{{- if and $isSecret (not (has $property $plain)) }}
config.kafka.properties.{{ $property }}: a ConfigMap is no place for a secret; put it into a Secret and name that in kafka.secretProperties
{{- end }}
{{- end }}
{{- $guardrails := dig "guardrails" dict .Values.config }}
{{- range $index, $provider := default list $guardrails.providers }}
{{- include "tollgate.headerChecks" (list (printf "config.guardrails.providers[%d].config" $index) (dig "config" dict $provider)) }}
{{- end }}
{{- include "tollgate.headerChecks" (list "config.guardrails.provider.config" (dig "provider" "config" dict $guardrails)) }}
{{- include "tollgate.headerChecks" (list "config.traces" (dig "traces" dict .Values.config)) }}
{{- end }}

{{/* Takes a list of a path and what stands there. */}}
{{- define "tollgate.headerChecks" }}
{{- range $name, $value := default dict (index . 1).headers }}
{{- if regexMatch "(?i)authorization|cookie|token|secret|password|key|credential" $name }}
{{ index $ 0 }}.headers.{{ $name }}: a ConfigMap is no place for a secret; mount a Secret with extraVolumes and name its file in header_files
{{- end }}
{{- end }}
{{- end }}

{{- define "tollgate.saslChecks" }}
{{- $sasl := index . 1 }}
{{- if and $sasl.existingSecret (not $sasl.username) (not $sasl.usernameKey) }}
{{ index . 0 }}: a Secret and no user; write username, or usernameKey if the Secret has it
{{- end }}
{{- if and $sasl.username $sasl.usernameKey }}
{{ index . 0 }}: both username and usernameKey; write one of them
{{- end }}
{{- if and (or $sasl.username $sasl.usernameKey) (not $sasl.existingSecret) }}
{{ index . 0 }}: a user and no password; write existingSecret, the name of the Secret with the password
{{- end }}
{{- end }}

{{- define "tollgate.accessChecks" }}
{{- $access := include "tollgate.workerAccess" . | fromYaml }}
{{- include "tollgate.saslChecks" (list "kafka.sasl" $access.sasl) }}
{{- include "tollgate.saslChecks" (list "topics.job.sasl" .Values.topics.job.sasl) }}
{{- $tls := .Values.kafka.tls }}
{{- if and (not $access.tls) (or $tls.ca.existingSecret $access.client.existingSecret) }}
kafka.tls: a Secret and enabled: false; write enabled: true, or remove the Secret
{{- end }}
{{- if and (not $access.tls) .Values.topics.job.tlsClient.existingSecret }}
topics.job.tlsClient: a Secret and kafka.tls.enabled: false; write enabled: true, or remove the Secret
{{- end }}
{{- $properties := dig "kafka" "properties" dict .Values.config }}
{{- range $property, $value := include "tollgate.properties" $access | fromYaml }}
{{- if hasKey $properties $property }}
config.kafka.properties.{{ $property }}: kafka.sasl or kafka.tls sets it too; write one of them
{{- end }}
{{- end }}
{{- if and $access.sasl.existingSecret (hasKey $properties "sasl.username") }}
config.kafka.properties.sasl.username: kafka.sasl sets it too; write one of them
{{- end }}
{{- range $property, $secret := .Values.kafka.secretProperties }}
{{- if or (hasKey $properties $property) (and $access.sasl.existingSecret (has $property (list "sasl.username" "sasl.password"))) }}
kafka.secretProperties.{{ $property }}: it is set elsewhere too; write it once
{{- end }}
{{- end }}
{{- $user := .Values.strimzi.user }}
{{- if and (or $user.create (eq .Values.topics.manage "strimzi")) (not .Values.strimzi.cluster) }}
strimzi.cluster: found nothing; write the name of the Kafka resource that topics and users are for
{{- end }}
{{- $elsewhere := and .Values.strimzi.namespace (ne .Values.strimzi.namespace .Release.Namespace) }}
{{- $ownSecret := ternary $tls.client.existingSecret .Values.kafka.sasl.existingSecret (eq $user.authentication "tls") }}
{{- if and $user.create $elsewhere (not $ownSecret) }}
strimzi.namespace: Strimzi makes the user's Secret there, and pods cannot read it from {{ .Release.Namespace }}; copy the Secret and name the copy in {{ ternary "kafka.tls.client" "kafka.sasl" (eq $user.authentication "tls") }}.existingSecret
{{- end }}
{{- if and .Values.strimzi.cluster $elsewhere $access.tls (not $tls.ca.existingSecret) }}
strimzi.namespace: the CA of the cluster stands there, and pods cannot read it from {{ .Release.Namespace }}; copy the Secret {{ .Values.strimzi.cluster }}-cluster-ca-cert and name the copy in kafka.tls.ca.existingSecret
{{- end }}
{{- range dig "kafka" "reply_topics" list .Values.config }}
{{- $prefix := trimSuffix "*" . }}
{{- range $role := ternary (list "events" "controls") list (and $user.create (hasSuffix "*" .)) }}
{{- $topic := include "tollgate.topic" (list $ $role) }}
{{- if hasPrefix $prefix $topic }}
config.kafka.reply_topics: with {{ $prefix }}* the KafkaUser could write {{ $topic }} ({{ $role }}); write a longer prefix, or names
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tollgate.topicChecks" }}
{{- $topics := .Values.topics }}
{{- if and (ne $topics.manage "none") (not $topics.partitions) }}
topics.partitions: found nothing; topics.manage: {{ $topics.manage }} needs the number of partitions
{{- end }}
{{- $properties := dig "kafka" "properties" dict .Values.config }}
{{- $mechanism := default (get $properties "sasl.mechanisms") (get $properties "sasl.mechanism") | upper }}
{{- if and (eq $topics.manage "job") (eq $mechanism "OAUTHBEARER") (not $topics.job.sasl.existingSecret) }}
topics.manage: the job cannot sign in with OAUTHBEARER; give it topics.job.sasl, or write none and make the topics yourself
{{- end }}
{{- if and (eq $topics.manage "job") .Values.strimzi.user.create }}
topics.manage: a job runs before Strimzi makes the user's Secret; write strimzi
{{- end }}
{{- if and $topics.minInsyncReplicas (gt (int $topics.minInsyncReplicas) (int $topics.replicationFactor)) }}
topics.minInsyncReplicas: more than topics.replicationFactor, so nothing could be written; write a smaller number
{{- end }}
{{- end }}

{{- define "tollgate.scalingChecks" }}
{{- if and .Values.keda.enabled .Values.hpa.enabled }}
keda.enabled and hpa.enabled: both set the replicas of the same StatefulSet; enable one of them
{{- end }}
{{- range $name := list "keda" "hpa" }}
{{- $scaler := get $.Values $name }}
{{- if and $scaler.enabled (not $.Values.topics.partitions) }}
topics.partitions: found nothing; {{ $name }} needs it, since a pod beyond the last partition has nothing to do
{{- else if $scaler.enabled }}
{{- $cap := include "tollgate.replicasMax" $ | int }}
{{- $max := default $cap $scaler.maxReplicas | int }}
{{- if gt $max $cap }}
{{ $name }}.maxReplicas: found {{ $max }}, and {{ $.Values.topics.partitions }} partitions with {{ include "tollgate.members" $ }} members a pod keep {{ $cap }} pods busy; write at most {{ $cap }}
{{- end }}
{{- if gt (int $scaler.minReplicas) $max }}
{{ $name }}.minReplicas: found {{ $scaler.minReplicas }}, which is more than the maximum of {{ $max }}; write less
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.keda.enabled .Values.kafka.secretProperties (not .Values.keda.authenticationRef) }}
keda.authenticationRef: found nothing; kafka.secretProperties are not passed on to KEDA, so name a TriggerAuthentication of your own
{{- end }}
{{- with .Values.podDisruptionBudget }}
{{- $hasMin := not (kindIs "invalid" .minAvailable) }}
{{- $hasMax := not (kindIs "invalid" .maxUnavailable) }}
{{- if and .enabled (eq $hasMin $hasMax) }}
podDisruptionBudget: found {{ ternary "both minAvailable and maxUnavailable" "neither minAvailable nor maxUnavailable" $hasMin }}; write one of them, and null for the other
{{- end }}
{{- $replicas := $.Values.replicas }}
{{- if $.Values.keda.enabled }}{{- $replicas = $.Values.keda.minReplicas }}{{- end }}
{{- if $.Values.hpa.enabled }}{{- $replicas = $.Values.hpa.minReplicas }}{{- end }}
{{- if and .enabled (or (kindIs "float64" .minAvailable) (kindIs "int64" .minAvailable) (kindIs "int" .minAvailable)) }}
{{- if ge (int .minAvailable) (int $replicas) }}
podDisruptionBudget.minAvailable: found {{ .minAvailable }} with {{ $replicas }} workers, so no node could be drained; write less
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tollgate.podChecks" }}
{{- $least := include "tollgate.gracePeriodMin" . | int }}
{{- with .Values.terminationGracePeriodSeconds }}
{{- if lt (int .) $least }}
terminationGracePeriodSeconds: found {{ . }}; config.worker.drain_timeout_ms, 5 s for leaving and a margin take {{ $least }}; write null, or more
{{- end }}
{{- end }}
{{- with .Values.statefulset.updateStrategy }}
{{- if and (eq .type "OnDelete") .maxUnavailable }}
statefulset.updateStrategy.maxUnavailable: it belongs to RollingUpdate; write null with OnDelete
{{- end }}
{{- end }}
{{- $access := include "tollgate.workerAccess" . | fromYaml }}
{{- $ours := list "TOLLGATE__WORKER__INSTANCE_ID" }}
{{- range include "tollgate.env" (list . $access) | fromYamlArray }}
{{- $ours = append $ours .name }}
{{- end }}
{{- $byValue := dict "TOLLGATE__ADMIN__LISTEN" "admin.port" "TOLLGATE__WORKER__DRAIN_TIMEOUT_MS" "config.worker.drain_timeout_ms" "TOLLGATE__WORKER__MEMBERS" "config.worker.members" "TOLLGATE__KAFKA__BROKERS" "config.kafka.brokers" "TOLLGATE__KAFKA__GROUP_ID" "config.kafka.group_id" }}
{{- range .Values.extraEnv }}
{{- if and (hasPrefix "TOLLGATE" .name) (not (hasPrefix "TOLLGATE__" .name)) }}
extraEnv {{ .name }}: no variable of Tollgate; write TOLLGATE__SECTION__KEY, with two underscores
{{- else if has .name $ours }}
extraEnv {{ .name }}: the chart sets this variable; remove it
{{- else if and (hasKey . "value") (regexMatch "^TOLLGATE__.*(PASSWORD|PASSPHRASE|SECRET|JAAS|SUBJECT_KEY|KEY_PEM)" .name) (not (hasSuffix "_FILE" .name)) }}
extraEnv {{ .name }}: a manifest is no place for a secret; use kafka.secretProperties or privacy.subjectKey, or valueFrom
{{- else if hasPrefix "TOLLGATE__KAFKA__TOPICS" .name }}
extraEnv {{ .name }}: other parts of the chart follow from it; write config.kafka.topics instead
{{- else if hasKey $byValue .name }}
extraEnv {{ .name }}: other parts of the chart follow from it; write {{ get $byValue .name }} instead
{{- end }}
{{- end }}
{{- range .Values.extraVolumes }}
{{- if has .name (list "config" "secrets") }}
extraVolumes {{ .name }}: the chart has a volume of this name; choose another one
{{- end }}
{{- end }}
{{- range .Values.extraVolumeMounts }}
{{- if or (hasPrefix "/etc/tollgate/config" .mountPath) (hasPrefix "/etc/tollgate/secrets" .mountPath) (eq "/etc/tollgate" .mountPath) }}
extraVolumeMounts {{ .name }}: {{ .mountPath }} would cover what the chart mounts; choose another path
{{- end }}
{{- end }}
{{- range list "commonLabels" "podLabels" }}
{{- $where := . }}
{{- range $key, $value := get $.Values . }}
{{- if or (hasPrefix "app.kubernetes.io/" $key) (hasPrefix "helm.sh/" $key) }}
{{ $where }}.{{ $key }}: the chart sets labels of this prefix; use another one
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tollgate.serveChecks" }}
{{- with .Values.serve }}
{{- if and .enabled (not .tokens.existingSecret) }}
serve.tokens.existingSecret: found nothing; name the Secret with the file of hashed tokens, which says who may ask for whom
{{- end }}
{{- if and .tls.clientCa.existingSecret (not .tls.existingSecret) }}
serve.tls.clientCa.existingSecret: found a Secret, and no serve.tls.existingSecret, so that no client is asked for a certificate; name the Secret of the servers' certificate too
{{- end }}
{{- if gt (int .hpa.minReplicas) (int .hpa.maxReplicas) }}
serve.hpa.minReplicas: found {{ .hpa.minReplicas }}, which is more than the maximum of {{ .hpa.maxReplicas }}; write less
{{- end }}
{{- $most := ternary .hpa.maxReplicas .replicas .hpa.enabled | int }}
{{- with $.Values.topics.partitions }}
{{- if and $.Values.serve.enabled (gt $most (int .)) }}
serve: {{ $most }} servers and {{ . }} partitions of the replies topic (topics.partitions); write fewer servers, since each needs a partition of its own
{{- end }}
{{- end }}
{{- end }}
{{- range $key := list "listen" "partition" "tls" "tokens" }}
{{- if hasKey (dig "serve" dict $.Values.config | default dict) $key }}
config.serve.{{ $key }}: the chart sets it; remove it and use the values under serve
{{- end }}
{{- end }}
{{- end }}
