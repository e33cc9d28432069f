/** Warnings about listeners, the store, proxies, CORS, alerts and size limits. */
import { isWithin, PRIVATE_NETWORKS } from "../../access/networks.ts";
import type { Config } from "../../config.ts";
import { bareHostname } from "../../host_address.ts";
import { JSON_MEMORY_FACTOR } from "../../server/body_budget.ts";
import { type Warning, warning } from "./warning.ts";

/** Shortest prefix, in bits, of a network that can plausibly contain only the operator's proxies. */
const MIN_PREFIX_BITS = 8;

/** Returns all warnings of this file. */
export function networkWarnings(config: Config): Warning[] {
  return [
    ...listenWarnings(config),
    ...storeWarnings(config),
    ...proxyWarnings(config),
    ...alertWarnings(config),
    ...sizeWarnings(config),
  ];
}

function* listenWarnings({ listen, admin, trusted_proxies }: Config): Generator<Warning> {
  const isReachable = !isOwnHost(listen.hostname) || isWildcard(listen.hostname);
  if (isReachable && trusted_proxies.length === 0) {
    yield warning(
      "listen.hostname",
      `"${listen.hostname}" can be reached from other machines, and there is no trusted proxy: list it in ` +
        "`trusted_proxies`, or listen on 127.0.0.1",
    );
  }
  if (admin !== undefined && isWildcard((admin.listen ?? listen).hostname)) {
    yield warning(
      admin.listen === undefined ? "admin" : "admin.listen.hostname",
      "The admin side listens on every interface: set `admin.listen`",
    );
  }
}

function storeWarnings({ store }: Config): Warning[] {
  return store.kind === "memory"
    ? [warning("store", 'Keys and bills are lost when the process ends: use "sqlite:PATH" to keep them')]
    : [];
}

function* proxyWarnings({ trusted_proxies, cors, groups, keys }: Config): Generator<Warning> {
  const rules = [...Object.values(groups), ...keys.map(({ rules }) => rules)];
  if (trusted_proxies.length === 0 && rules.some(({ ips }) => ips !== undefined)) {
    yield warning(
      "trusted_proxies",
      "Keys are restricted to client addresses, but clients behind a proxy have the proxy's address: list the proxy, " +
        "unless there is none",
    );
  }
  for (const [index, network] of trusted_proxies.entries()) {
    const bits = /\/(\d+)$/.exec(network)?.[1];
    if (bits === undefined || Number(bits) >= MIN_PREFIX_BITS) continue;
    yield warning(
      `trusted_proxies[${index}]`,
      `"${network}" lets almost anyone forge their address: list only your proxies`,
    );
  }
  for (const [index, origin] of cors.origins.entries()) {
    const url = new URL(origin);
    if (url.protocol === "https:" || isOwnHost(url.hostname)) continue;
    yield warning(
      `cors.origins[${index}]`,
      `Pages of "${origin}" are loaded without encryption and can be tampered with: use https`,
    );
  }
}

/** Warns about alerts without encryption. It names only the host of the webhook: its path may be a secret. */
function alertWarnings({ alerts }: Config): Warning[] {
  const url = URL.parse(alerts?.webhook.reveal() ?? "");
  if (url === null || url.protocol === "https:" || isOwnHost(url.hostname)) return [];
  return [warning("alerts.webhook", `Alerts go to "${url.hostname}" unencrypted: use https`)];
}

/** Warns about limits that are smaller than another limit that they must cover. */
function sizeWarnings({ resource_limits: limits, images, shutdown }: Config): Warning[] {
  const { uploads } = images;
  const budget = limits.body_budget_bytes;
  const pairs: [path: string, value: number, other: string, otherValue: number][] = [
    [
      "resource_limits.body_budget_bytes",
      budget,
      `${JSON_MEMORY_FACTOR} times \`resource_limits.json_body_bytes\``,
      limits.json_body_bytes * JSON_MEMORY_FACTOR,
    ],
    ["resource_limits.body_budget_bytes", budget, "`images.uploads.max_upload_bytes`", uploads.max_upload_bytes],
    [
      "images.uploads.max_upload_bytes",
      uploads.max_upload_bytes,
      "`images.uploads.max_file_bytes`",
      uploads.max_file_bytes,
    ],
    [
      "shutdown.images_drain_seconds",
      shutdown.images_drain_seconds,
      "`shutdown.drain_seconds`",
      shutdown.drain_seconds,
    ],
  ];
  return pairs.filter(([, value, , otherValue]) => value < otherValue).map((
    [path, value, other, otherValue],
  ) => (warning(path, `${value} is less than ${other}, which is ${otherValue}: make it larger, or the other smaller`)));
}

/** Returns whether a host is this machine or in a private network. A name without a dot counts as private. */
export function isOwnHost(host: string): boolean {
  const bare = bareHostname(host);
  return isWithin(bare, PRIVATE_NETWORKS) || /^[a-z0-9-]+$/i.test(bare) ||
    /\.(localhost|local|internal|lan|home\.arpa)$/i.test(bare);
}

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::" || host === "[::]";
}
