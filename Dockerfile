# The one image of Tributary: the program in a few files, Node.js, and the two host tools of the network
# roles (nft, wg), and wireguard-go for kernels without WireGuard. Nothing that installs or compiles is left in it.
#
#   buildah bud -t tributary .        (or docker, podman, kaniko)
#
# Other bases go in through the arguments: BASE_IMAGE has node and npm and only builds, GO_IMAGE has Go and only builds;
# RUNTIME_IMAGE is shipped.

ARG BASE_IMAGE=docker.io/library/node:26-bookworm-slim
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG RUNTIME_IMAGE=docker.io/library/debian:bookworm-slim

# Not the distribution's: that one is four years older and five times slower. The version is that of
# lab/binaries/wireguard/go.mod. A base that brings the program along is taken as it is, so a build needs no module proxy.
FROM ${GO_IMAGE} AS wireguard
ARG WIREGUARD_GO=v0.0.0-20260522210424-ecfc5a8d5446
RUN mkdir -p /out \
 && if command -v wireguard-go >/dev/null; then cp "$(command -v wireguard-go)" /out/wireguard-go; \
    else CGO_ENABLED=0 GOBIN=/out go install -trimpath -ldflags '-s -w' "golang.zx2c4.com/wireguard@${WIREGUARD_GO}" \
      && mv /out/wireguard /out/wireguard-go; fi

# The packages that stay beside the program, see tools/build-program.ts: native code, and what finds it.
# Apart from the build, so that a change of the sources leaves this layer as it is.
FROM ${BASE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
 && find node_modules -mindepth 1 -maxdepth 1 ! -name netlink ! -name node-gyp-build -exec rm -rf {} + \
 && find node_modules -type f \( -name '*.d.ts' -o -name '*.map' \) -exec rm -f {} + \
 && rm -rf node_modules/netlink/prebuilds/linux-arm node_modules/netlink/prebuilds/linux-ia32 node_modules/netlink/src

# A quarter of the program is symbols, which nothing here reads. A base without strip(1) brings one along that has none.
FROM ${GO_IMAGE} AS node
COPY --from=dependencies /usr/local/bin/node /out/node
RUN if command -v strip >/dev/null; then strip /out/node; fi

FROM ${BASE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src ./src
COPY web ./web
COPY tools/build-page.ts tools/build-program.ts tools/without-models.ts ./tools/
RUN npm run build

FROM ${RUNTIME_IMAGE}
# A base that brings the tools along is taken as it is, so a build needs no package mirror.
RUN command -v nft >/dev/null && command -v wg >/dev/null \
 || { apt-get update \
   && apt-get install -y --no-install-recommends libatomic1 libstdc++6 nftables wireguard-tools \
   && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*; }
COPY --from=wireguard /out/wireguard-go /usr/local/bin/wireguard-go
COPY --from=node /out/node /usr/local/bin/node
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY --from=build /app/dist ./dist
# One arena of malloc: with one for each thread, memory that answers have needed stays in each of them. What is larger than the pieces of
# 64 KiB in which Node.js reads goes back to the kernel when it is freed; by itself malloc keeps ever larger pieces.
ENV NODE_ENV=production MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=73728
# A number, so that Kubernetes can tell that it is not root. The network roles set runAsUser: 0 themselves.
USER 65532:65532
# Several threads that collect the garbage of 4 MiB wait for each other longer than one needs for it. After long work the program
# itself asks for a collection (src/lib/spare-memory.ts). One thread beside the main one compiles and marks: V8 hands each piece of work to
# all that it has, and by itself has four on any machine (docs/decisions/0111-one-thread-beside-the-main-one.md).
ENTRYPOINT ["node", "--v8-pool-size=1", "--no-parallel-scavenge", "--expose-gc", "/app/dist/main.js"]
