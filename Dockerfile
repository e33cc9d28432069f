# Builds the one executable, then ships nothing else. A container makes no key by itself, as its log would keep it. First:
#   docker run --rm -v sluice:/var/lib/sluice/data sluice keys add first
FROM denoland/deno:2.9.6 AS build
WORKDIR /src
COPY deno.json deno.lock main.ts ./
COPY types types
COPY lib lib
COPY routes routes
COPY tools tools
RUN deno task compile && mkdir -p /stage/var/lib/sluice/data

# glibc and nothing more: no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/build/sluice /usr/local/bin/sluice
COPY --from=build --chown=nonroot:nonroot /stage/var/lib/sluice /var/lib/sluice
# The store lies in ./data; mount a volume there to keep the keys.
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice/data
# `container` is how programs find out that they run in one: the start then shows the command for a key as docker exec.
ENV SLUICE_HOSTNAME=0.0.0.0 SLUICE_PORT=8790 container=oci
EXPOSE 8790
# As a number (nonroot of the base image), so that Kubernetes can tell that it is not root.
USER 65532:65532
HEALTHCHECK --interval=15s --timeout=5s --start-period=5s CMD ["/usr/local/bin/sluice", "health"]
ENTRYPOINT ["/usr/local/bin/sluice"]
CMD ["serve"]
