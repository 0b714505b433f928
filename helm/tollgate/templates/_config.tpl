{{/* The configuration file, and what signs in with Kafka: `access` is a dict of sasl, ca and client, each with its Secret, if any. */}}

{{- define "tollgate.strimziUser" -}}
{{- if .Values.strimzi.user.create -}}
{{- default (include "tollgate.fullname" .) .Values.strimzi.user.name -}}
{{- end -}}
{{- end -}}

{{/* What workers sign in with, as YAML. */}}
{{- define "tollgate.workerAccess" -}}
{{- $user := include "tollgate.strimziUser" . -}}
{{- $byUser := dict -}}
{{- $sasl := deepCopy .Values.kafka.sasl -}}
{{- $client := deepCopy .Values.kafka.tls.client -}}
{{- if and $user (eq .Values.strimzi.user.authentication "scram-sha-512") -}}
{{- $_ := set $sasl "mechanism" "SCRAM-SHA-512" -}}
{{- $_ := set $sasl "existingSecret" (default $user $sasl.existingSecret) -}}
{{- if not $sasl.usernameKey -}}{{- $_ := set $sasl "username" (default $user $sasl.username) -}}{{- end -}}
{{- else if $user -}}
{{- if not $client.existingSecret -}}
{{- $client = dict "existingSecret" $user "certificateKey" "user.crt" "privateKeyKey" "user.key" "privateKeyPasswordKey" "" -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "sasl" $sasl "client" $client "ca" (include "tollgate.ca" . | fromYaml) "tls" (include "tollgate.usesTls" . | eq "true")) -}}
{{- end -}}

{{/* What the topic job signs in with: its own Secrets, or else the workers'. */}}
{{- define "tollgate.jobAccess" -}}
{{- $access := include "tollgate.workerAccess" . | fromYaml -}}
{{- $own := .Values.topics.job -}}
{{- if or $own.sasl.existingSecret $own.tlsClient.existingSecret -}}
{{- $_ := set $access "sasl" (mergeOverwrite (deepCopy $own.sasl) (dict "mechanism" .Values.kafka.sasl.mechanism)) -}}
{{- $_ := set $access "client" $own.tlsClient -}}
{{- $_ := set $access "isOwn" true -}}
{{- end -}}
{{- toYaml $access -}}
{{- end -}}

{{- define "tollgate.usesTls" -}}
{{- or .Values.kafka.tls.enabled (and .Values.strimzi.user.create (eq .Values.strimzi.user.authentication "tls")) -}}
{{- end -}}

{{- define "tollgate.ca" -}}
{{- $ca := .Values.kafka.tls.ca -}}
{{- if and .Values.strimzi.cluster (not $ca.existingSecret) (include "tollgate.usesTls" . | eq "true") -}}
{{- $ca = dict "existingSecret" (printf "%s-cluster-ca-cert" .Values.strimzi.cluster) "key" "ca.crt" -}}
{{- end -}}
{{- toYaml $ca -}}
{{- end -}}

{{/* The librdkafka properties that the chart sets in the file, without secrets. Takes `access`. */}}
{{- define "tollgate.properties" -}}
{{- $hasSasl := not (empty .sasl.existingSecret) -}}
{{- if and $hasSasl .tls }}
security.protocol: sasl_ssl
{{- else if $hasSasl }}
security.protocol: sasl_plaintext
{{- else if .tls }}
security.protocol: ssl
{{- end }}
{{- if $hasSasl }}
sasl.mechanism: {{ .sasl.mechanism }}
{{- end }}
{{- if and .tls .ca.existingSecret }}
ssl.ca.location: /etc/tollgate/secrets/ca/{{ .ca.key }}
{{- end }}
{{- if and .tls .client.existingSecret }}
ssl.certificate.location: /etc/tollgate/secrets/client/{{ .client.certificateKey }}
ssl.key.location: /etc/tollgate/secrets/client/{{ .client.privateKeyKey }}
{{- end }}
{{- end -}}

{{/* kafka.secretProperties, without what another principal signs in with where the topic job has its own. */}}
{{- define "tollgate.secretProperties" -}}
{{- $kept := dict -}}
{{- range $property, $secret := (index . 0).Values.kafka.secretProperties -}}
{{- if not (and (index $ 1).isOwn (regexMatch "^(sasl|ssl\\.(key|keystore|certificate))\\." $property)) -}}
{{- $_ := set $kept $property $secret -}}
{{- end -}}
{{- end -}}
{{- toYaml $kept -}}
{{- end -}}

{{/* The file. Takes a list of root and access. */}}
{{- define "tollgate.config" -}}
{{- $root := index . 0 -}}
{{- $config := deepCopy $root.Values.config -}}
{{- $made := include "tollgate.properties" (index . 1) | fromYaml -}}
{{- if $made -}}
{{- $kafka := default dict $config.kafka -}}
{{- $written := default dict $kafka.properties -}}
{{- if (index . 1).isOwn -}}
{{- $written = omit $written "sasl.username" "sasl.mechanism" "sasl.mechanisms" "ssl.certificate.location" "ssl.key.location" -}}
{{- end -}}
{{- /* For workers, a property that is set in both is refused; the job keeps what is written, such as the protocol. */ -}}
{{- $_ := set $kafka "properties" (mergeOverwrite $made $written) -}}
{{- $_ := set $config "kafka" $kafka -}}
{{- end -}}
{{- $_ := set $config "admin" (dict "listen" (printf "%s:%v" $root.Values.admin.address $root.Values.admin.port)) -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The file of servers: that of workers, with what servers listen to. Takes a list of root and access. */}}
{{- define "tollgate.serveConfig" -}}
{{- $root := index . 0 -}}
{{- $config := include "tollgate.config" . | fromYaml -}}
{{- $serve := mergeOverwrite (dict "stop_delay_ms" 5000) (default dict $config.serve | deepCopy) (dict "listen" (printf "%s:%v" $root.Values.admin.address $root.Values.serve.port) "tokens" "/etc/tollgate/secrets/serve/tokens.yaml") -}}
{{- with $root.Values.serve.tls }}
{{- if .existingSecret }}
{{- $tls := dict "certificate_file" "/etc/tollgate/secrets/serve/tls.crt" "key_file" "/etc/tollgate/secrets/serve/tls.key" }}
{{- if .clientCa.existingSecret }}
{{- $_ := set $tls "client_ca_file" "/etc/tollgate/secrets/serve/clients.crt" }}
{{- end }}
{{- $_ := set $serve "tls" $tls }}
{{- end }}
{{- end }}
{{- $_ := set $config "serve" $serve -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Variables that name the files of Secrets. Takes a list of root and access. */}}
{{- define "tollgate.secretEnv" -}}
{{- $root := index . 0 -}}
{{- $access := index . 1 -}}
{{- with $access.sasl -}}
{{- if .existingSecret }}
{{- if .usernameKey }}
- name: TOLLGATE__KAFKA__PROPERTIES__SASL_USERNAME_FILE
  value: /etc/tollgate/secrets/sasl/{{ .usernameKey }}
{{- else }}
- name: TOLLGATE__KAFKA__PROPERTIES__SASL_USERNAME
  value: {{ .username | quote }}
{{- end }}
- name: TOLLGATE__KAFKA__PROPERTIES__SASL_PASSWORD_FILE
  value: /etc/tollgate/secrets/sasl/{{ .passwordKey }}
{{- end }}
{{- end }}
{{- if and $access.tls $access.client.existingSecret $access.client.privateKeyPasswordKey }}
- name: TOLLGATE__KAFKA__PROPERTIES__SSL_KEY_PASSWORD_FILE
  value: /etc/tollgate/secrets/client/{{ $access.client.privateKeyPasswordKey }}
{{- end }}
{{- range $property, $secret := include "tollgate.secretProperties" . | fromYaml }}
- name: TOLLGATE__KAFKA__PROPERTIES__{{ $property | upper | replace "." "_" }}_FILE
  value: /etc/tollgate/secrets/properties/{{ $property }}
{{- end }}
{{- with $root.Values.privacy.subjectKey }}
{{- if .existingSecret }}
- name: TOLLGATE__PRIVACY__SUBJECT_KEY_FILE
  value: /etc/tollgate/secrets/privacy/subject-key
{{- end }}
{{- end }}
{{- end -}}

{{/* The Secrets of servers alone. Takes root. */}}
{{- define "tollgate.serveSources" }}
- secret:
    name: {{ .Values.serve.tokens.existingSecret | quote }}
    items:
      - {key: {{ .Values.serve.tokens.key | quote }}, path: serve/tokens.yaml}
{{- with .Values.serve.tls }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret | quote }}
    items:
      - {key: {{ .certificateKey | quote }}, path: serve/tls.crt}
      - {key: {{ .privateKeyKey | quote }}, path: serve/tls.key}
{{- end }}
{{- if .clientCa.existingSecret }}
- secret:
    name: {{ .clientCa.existingSecret | quote }}
    items:
      - {key: {{ .clientCa.key | quote }}, path: serve/clients.crt}
{{- end }}
{{- end }}
{{- end -}}

{{/* The sources of the volume with all Secrets: only the keys that are used, so that nothing else of a Secret reaches the pod. */}}
{{- define "tollgate.secretSources" -}}
{{- $root := index . 0 -}}
{{- $access := index . 1 -}}
{{- with $access.sasl -}}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret | quote }}
    items:
      - {key: {{ .passwordKey | quote }}, path: {{ printf "sasl/%s" .passwordKey | quote }}}
      {{- if .usernameKey }}
      - {key: {{ .usernameKey | quote }}, path: {{ printf "sasl/%s" .usernameKey | quote }}}
      {{- end }}
{{- end }}
{{- end }}
{{- if and $access.tls $access.ca.existingSecret }}
- secret:
    name: {{ $access.ca.existingSecret | quote }}
    items:
      - {key: {{ $access.ca.key | quote }}, path: {{ printf "ca/%s" $access.ca.key | quote }}}
{{- end }}
{{- with $access.client -}}
{{- if and $access.tls .existingSecret }}
- secret:
    name: {{ .existingSecret | quote }}
    items:
      {{- range compact (list .certificateKey .privateKeyKey .privateKeyPasswordKey) }}
      - {key: {{ . | quote }}, path: {{ printf "client/%s" . | quote }}}
      {{- end }}
{{- end }}
{{- end }}
{{- range $property, $secret := include "tollgate.secretProperties" . | fromYaml }}
- secret:
    name: {{ $secret.existingSecret | quote }}
    items:
      - {key: {{ $secret.key | quote }}, path: {{ printf "properties/%s" $property | quote }}}
{{- end }}
{{- if $access.isServe }}
{{- include "tollgate.serveSources" $root }}
{{- end }}
{{- with $root.Values.privacy.subjectKey }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret | quote }}
    items:
      - {key: {{ .key | quote }}, path: privacy/subject-key}
{{- end }}
{{- end }}
{{- end -}}
