/** Parses and compares IPv4 and IPv6 addresses and networks. */
import { isIP } from "node:net";

/** Returns whether a text is an IP address, or a network such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  return readNetwork(text) !== undefined;
}

/** Returns whether a host name or address is this machine itself, such as `localhost` or `[::1]`. */
export function isLoopbackHost(hostname: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname);
}

const LOOPBACK_NETWORKS = ["127.0.0.0/8", "::1"];

/** Returns whether an IP address is a loopback address of this machine. */
export function isLoopbackAddress(address: string): boolean {
  return isWithin(address, LOOPBACK_NETWORKS);
}

/** Special-purpose networks (RFC 6890), and site-local addresses (RFC 3879). Some clouds use 240.0.0.0/4 inside. */
export const PRIVATE_NETWORKS: readonly string[] =
  `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.168.0.0/16
  198.18.0.0/15 224.0.0.0/4 240.0.0.0/4 ::/127 fc00::/7 fe80::/10 fec0::/10 ff00::/8`.split(/\s+/);

/** Returns whether a text is an IP address. */
export function isAddress(text: string): boolean {
  return readAddress(text) !== undefined;
}

/** Returns whether an address is in any of the networks. IPv4 inside IPv6 (`::ffff:10.0.0.1`) counts as IPv4. */
export function isWithin(address: string, networks: readonly string[]): boolean {
  const parsed = readAddress(address);
  return parsed !== undefined && networks.some((text) => {
    const network = readNetwork(text);
    if (network?.size !== parsed.size) return false;
    const hostBits = BigInt(network.size - network.bits);
    return parsed.value >> hostBits === network.value >> hostBits;
  });
}

/**
 * Returns the network that counts as one client: an IPv4 address itself, or the /64 of an IPv6 address, which usually
 * belongs to one customer. Other texts are returned unchanged.
 */
export function clientNetwork(address: string): string {
  const parsed = readAddress(address);
  if (parsed === undefined) return address;
  return parsed.size === 32 ? `4:${parsed.value.toString(16)}` : `6:${(parsed.value >> 64n).toString(16)}`;
}

/** IPv6 networks that embed an IPv4 address, with the number of bits that follow it. */
const EMBEDDINGS: readonly (readonly [network: string, bitsAfter: bigint])[] = [
  // Compatible and translated addresses (RFC 4291, 7915); NAT64, global and local (RFC 6052, 8215).
  ["::/96", 0n],
  ["::ffff:0:0:0/96", 0n],
  ["64:ff9b::/96", 0n],
  ["64:ff9b:1::/48", 0n],
  // 6to4 (RFC 3056).
  ["2002::/16", 80n],
];

/**
 * Returns the IPv4 addresses embedded in an IPv6 address. Those in `::ffff:0:0/96` are left out: this file treats them
 * as IPv4 anyway.
 */
export function embeddedIPv4(address: string): string[] {
  const parsed = readAddress(address);
  if (parsed?.size !== 128) return [];
  return EMBEDDINGS.flatMap(([network, bitsAfter]) =>
    isWithin(address, [network]) ? [formatV4((parsed.value >> bitsAfter) & 0xffffffffn)] : []
  );
}

function formatV4(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join(".");
}

interface Address {
  /** Address length in bits. */
  size: 32 | 128;
  value: bigint;
}

interface Network extends Address {
  /** Prefix length. */
  bits: number;
}

/** The first 96 bits of an address in `::ffff:0:0/96`, which ends with an IPv4 address. */
const MAPPED_PREFIX = 0xffffn;

function readNetwork(text: string): Network | undefined {
  const [, addressText = "", prefixLength] = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(addressText);
  const address = readAddress(addressText);
  if (address === undefined) return undefined;
  const maxLength = version === 4 ? 32 : 128;
  // A network wider than ::ffff:0:0/96 mixes IPv4 and IPv6 and is rejected.
  const bits = (prefixLength === undefined ? maxLength : Number(prefixLength)) - (maxLength - address.size);
  return bits >= 0 && bits <= address.size ? { ...address, bits } : undefined;
}

function readAddress(text: string): Address | undefined {
  const version = isIP(text);
  if (version === 4) return { size: 32, value: readV4(text) };
  if (version !== 6 || text.includes("%")) return undefined;
  const value = readV6(text);
  return value >> 32n === MAPPED_PREFIX ? { size: 32, value: value & 0xffffffffn } : { size: 128, value };
}

function readV4(text: string): bigint {
  return text.split(".").reduce((value, part) => value << 8n | BigInt(part), 0n);
}

function readV6(text: string): bigint {
  const [left = [], right] = text.split("::").map(readParts);
  const zeros = right === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array<bigint>(zeros).fill(0n), ...right ?? []].reduce((value, part) => value << 16n | part, 0n);
}

/** Parses the 16-bit groups; an IPv4 address at the end makes two. */
function readParts(text: string): bigint[] {
  return (text === "" ? [] : text.split(":")).flatMap((part) => {
    if (!part.includes(".")) return [BigInt(`0x${part}`)];
    const value = readV4(part);
    return [value >> 16n, value & 0xffffn];
  });
}
