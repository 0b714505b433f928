# syntax=docker/dockerfile:1
# The image of Tollgate: docs/containers.md says what is in it, how large it is and how the stages are proven without an engine.
#
#   docker build --build-arg REVISION="$(git rev-parse --short=12 HEAD)" --tag tollgate .
#   docker build --target symbols --output type=local,dest=symbols .

# The same Debian release to build and to run: the program is linked with the C library and the OpenSSL of the base below.
FROM rust:1.95.0-slim-trixie AS tools
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ libssl-dev make pkg-config \
    && rm -rf /var/lib/apt/lists/*
RUN cargo install cargo-chef --version 0.1.78 --locked
WORKDIR /src

# The manifests alone, as one file. It changes with the dependencies and not with the sources, so the next stage is taken from the cache.
FROM tools AS plan
COPY . .
RUN cargo chef prepare --recipe-path recipe.json

# All dependencies, compiled: most of the time of a build.
FROM tools AS dependencies
ARG FEATURES=openssl-system
COPY --from=plan /src/recipe.json recipe.json
RUN cargo chef cook --locked --profile dist --package tollgate --no-default-features --features "$FEATURES" --recipe-path recipe.json

FROM dependencies AS build
COPY . .
# Last, because it differs with every commit.
ARG REVISION=unknown
RUN TOLLGATE_REVISION="$REVISION" cargo build --locked --profile dist --package tollgate --bin tollgate --no-default-features --features "$FEATURES"
# The line tables go to a file of their own, which a debugger finds by the build id.
RUN mkdir /out \
    && objcopy --only-keep-debug --compress-debug-sections=zlib target/dist/tollgate /out/tollgate.debug \
    && objcopy --strip-all --add-gnu-debuglink=/out/tollgate.debug target/dist/tollgate /out/tollgate

# What a crash of this very build is read with.
FROM scratch AS symbols
COPY --from=build /out/tollgate.debug /tollgate.debug

# The C library, libgcc, OpenSSL and certificate authorities, and neither a shell nor a package manager.
FROM gcr.io/distroless/cc-debian13:nonroot AS runtime
ARG REVISION=unknown
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="tollgate" \
      org.opencontainers.image.description="A Kafka-native gate that every tool call of a fleet of AI agents passes" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="gcr.io/distroless/cc-debian13:nonroot"
COPY LICENSE /usr/share/doc/tollgate/LICENSE
COPY --from=build /out/tollgate /usr/local/bin/tollgate
# OpenSSL, and with it librdkafka, reads the certificate authorities from here. No variable of Tollgate's own is set: it would count over
# the user's configuration file.
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
# By number, so that Kubernetes can see that it is not root.
USER 65532:65532
WORKDIR /
EXPOSE 9464
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/usr/local/bin/tollgate", "health"]
ENTRYPOINT ["/usr/local/bin/tollgate"]
CMD ["run"]
