/**
 * Restricts the addresses of upstreams. Host names are resolved first, and the checked address is used for the
 * connection.
 */
import { settlesWithin } from "../abort.ts";
import { embeddedIPv4, isAddress, isWithin, PRIVATE_NETWORKS } from "../access/networks.ts";
import { boundConcurrency } from "../scheduler.ts";

/** Addresses at which clouds serve credentials or machine data without authentication. */
const METADATA_ADDRESSES: readonly string[] = [
  // Link-local: AWS, Azure, Google, Oracle, DigitalOcean, Hetzner, OpenStack; tasks of ECS and pods of EKS; Tencent.
  "169.254.0.0/16",
  // AWS and EKS over IPv6, and Google.
  "fd00:ec2::254",
  "fd00:ec2::23",
  "fd20:ce::254",
  // Scaleway over IPv6.
  "fd00:42::42",
  // Alibaba.
  "100.100.100.200",
  // Azure's host.
  "168.63.129.16",
  // Oracle, for machines of another kind.
  "192.0.0.192",
];

/** Thrown for an address that upstreams may not have. */
export class BlockedAddress extends Error {
  override readonly name = "BlockedAddress";
}

/** Checks one resolved address of a host. @throws {BlockedAddress} */
export type AddressGuard = (hostname: string, address: string) => void;

/**
 * Creates a guard that refuses metadata addresses in every notation.
 * @param privateNetworks the only private networks that may be reached, metadata addresses included; absent: all private
 * networks except metadata addresses
 */
export function createAddressGuard(privateNetworks?: readonly string[]): AddressGuard {
  return (hostname, address) => {
    const spellings = [address, ...embeddedIPv4(address)];
    if (privateNetworks !== undefined && spellings.some((one) => isWithin(one, privateNetworks))) return;
    const blocked = privateNetworks === undefined ? METADATA_ADDRESSES : [...METADATA_ADDRESSES, ...PRIVATE_NETWORKS];
    if (!spellings.some((one) => isWithin(one, blocked))) return;
    const isMetadata = spellings.some((one) => isWithin(one, METADATA_ADDRESSES));
    throw new BlockedAddress(
      `${hostname} is at ${address}, ` +
        (isMetadata ? "a metadata address of clouds" : 'a private address that "private_networks" does not have'),
    );
  };
}

/** Host names that mean the same address everywhere. */
const WELL_KNOWN_NAMES: ReadonlyMap<string, string> = new Map([
  ["localhost", "127.0.0.1"],
  ["metadata.google.internal", "169.254.169.254"],
  ["metadata.goog", "169.254.169.254"],
]);

/** Returns the IP address in a URL, or of a well-known name; undefined for a name that must be resolved. */
export function literalAddress(url: string): string | undefined {
  const { hostname = "" } = URL.parse(url) ?? {};
  // An expression for the last dots would take quadratic time: hours for a megabyte of dots.
  let end = hostname.length;
  while (hostname[end - 1] === ".") end--;
  const host = hostname.startsWith("[") ? hostname.slice(1, end - 1) : hostname.slice(0, end);
  return isAddress(host) ? host : WELL_KNOWN_NAMES.get(host.endsWith(".localhost") ? "localhost" : host);
}

/** The default guard, which refuses only metadata addresses. */
export const metadataGuard: AddressGuard = createAddressGuard();

/** Resolves a host name. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

/** Guard and resolver. Defaults: `metadataGuard` and the system resolver. */
export interface AddressPolicyOptions {
  guard?: AddressGuard | undefined;
  lookup?: Lookup | undefined;
}

/**
 * Resolves a host and checks all its addresses. One refused address refuses the host, because its name cannot be trusted.
 * @throws {BlockedAddress}, or the resolver's error
 */
export async function allowedAddresses(
  hostname: string,
  { guard = metadataGuard, lookup = systemLookup }: AddressPolicyOptions = {},
): Promise<readonly string[]> {
  const addresses = isAddress(hostname) ? [hostname] : await lookup(hostname);
  for (const address of addresses) guard(hostname, address);
  return addresses;
}

/** Maximum number of lookups that run concurrently. */
const MAX_LOOKUPS = 16;

/**
 * Returns a resolver whose concurrent calls for one name share a lookup. A lookup cannot be cancelled, and occupies one
 * of the runtime's 32 threads, which also write the ledger, for as long as the name servers do not answer. Therefore
 * only a part of the threads is used, and lookups of further names wait.
 */
export function shareLookups(lookup: Lookup): Lookup {
  const running = new Map<string, Promise<readonly string[]>>();
  const runInTurn = boundConcurrency(MAX_LOOKUPS);
  return (hostname) => {
    let looking = running.get(hostname);
    if (looking === undefined) {
      looking = runInTurn(() => lookup(hostname)).finally(() => running.delete(hostname));
      running.set(hostname, looking);
    }
    return looking;
  };
}

const systemLookup = shareLookups(async (hostname) => {
  const { lookup } = await import("node:dns/promises");
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
});

/**
 * Time for which the last addresses of a host are used while its name cannot be resolved, in milliseconds, so that
 * upstreams stay reachable during an outage of the name servers.
 */
const KNOWN_MS = 3_600_000;

/** Longest wait for the resolver if such addresses are known, in milliseconds. */
const LOOKUP_MS = 1_000;

/** Address policy for the HTTP/1.1 client: `resolve` resolves and checks a host, `check` checks one address. */
export function addressPolicy(options: AddressPolicyOptions = {}): {
  resolve(hostname: string): Promise<readonly string[]>;
  check(hostname: string, address: string): void;
} {
  /** The last addresses by host, and when they were found, by `performance.now()`. */
  const known = new Map<string, { addresses: readonly string[]; at: number }>();

  async function lookUp(hostname: string): Promise<readonly string[]> {
    const addresses = await allowedAddresses(hostname, options);
    known.set(hostname, { addresses, at: performance.now() });
    return addresses;
  }

  async function resolve(hostname: string): Promise<readonly string[]> {
    const last = known.get(hostname);
    const lookingUp = lookUp(hostname);
    if (last === undefined || performance.now() - last.at > KNOWN_MS) return await lookingUp;
    const isFound = await settlesWithin(LOOKUP_MS, lookingUp).catch((error) => {
      if (error instanceof BlockedAddress) throw error;
      return false;
    });
    if (isFound) return await lookingUp;
    lookingUp.catch(() => {});
    return last.addresses;
  }

  return { resolve, check: options.guard ?? metadataGuard };
}
