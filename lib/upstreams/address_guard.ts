/** Which addresses upstreams may have. A name is judged by what it resolves to, and connected to at that very address. */
import { isAddress, isWithin, withinIPv6 } from "../access/networks.ts";

/** Where clouds give out credentials, or speak to the machine itself, to whoever asks from it. */
const METADATA: readonly string[] = [
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

/** What is not the public internet (RFC 6890). */
const PRIVATE: readonly string[] = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "::/127",
  "fc00::/7",
  "fe80::/10",
];

/** An address that no upstream may have. */
export class BlockedAddress extends Error {
  override readonly name = "BlockedAddress";
}

/** Judges what a host resolves to. @throws {BlockedAddress} */
export type AddressGuard = (hostname: string, address: string) => void;

/**
 * Makes a guard that refuses metadata addresses, however they are spelled.
 * @param privateNetworks the only private networks that may be reached; what is listed may also be a metadata address;
 * absent: all private ones but metadata addresses
 */
export function createAddressGuard(privateNetworks?: readonly string[]): AddressGuard {
  return (hostname, address) => {
    const spellings = [address, ...withinIPv6(address)];
    if (privateNetworks !== undefined && spellings.some((one) => isWithin(one, privateNetworks))) return;
    const closed = privateNetworks === undefined ? METADATA : [...METADATA, ...PRIVATE];
    if (!spellings.some((one) => isWithin(one, closed))) return;
    const isMetadata = spellings.some((one) => isWithin(one, METADATA));
    throw new BlockedAddress(
      `${hostname} is at ${address}, ` +
        (isMetadata ? "a metadata address of clouds" : 'a private address that "private_networks" does not have'),
    );
  };
}

/** The guard that is in force where nothing is configured. */
export const metadataGuard: AddressGuard = createAddressGuard();

/** Finds the addresses of a name. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

/** How addresses are judged and found; absent: metadata addresses are refused, and the system looks names up. */
export interface AddressPolicyOptions {
  guard?: AddressGuard | undefined;
  lookup?: Lookup | undefined;
}

/**
 * All addresses of a host, in the order of the system. One that is refused refuses them all: such a name is not to be
 * trusted.
 * @throws {BlockedAddress}; what the lookup says
 */
export async function allowedAddresses(
  hostname: string,
  { guard = metadataGuard, lookup = systemLookup }: AddressPolicyOptions = {},
): Promise<readonly string[]> {
  const addresses = isAddress(hostname) ? [hostname] : await lookup(hostname);
  for (const address of addresses) guard(hostname, address);
  return addresses;
}

async function systemLookup(hostname: string): Promise<readonly string[]> {
  const { lookup } = await import("node:dns/promises");
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
}

/** Policy of the HTTP/1.1 client: `resolve` finds and judges the addresses of a host, `check` judges one. */
export function addressPolicy(options: AddressPolicyOptions = {}): {
  resolve(hostname: string): Promise<readonly string[]>;
  check(hostname: string, address: string): void;
} {
  return {
    resolve: (hostname) => allowedAddresses(hostname, options),
    check: options.guard ?? metadataGuard,
  };
}
