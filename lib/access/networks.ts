/** Addresses of clients and the networks they are in, IPv4 and IPv6. */
import { BlockList, isIP } from "node:net";

/** True for an IP address, or a network such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  return readNetwork(text) !== undefined;
}

/** Whether an address is in one of the networks. IPv4 inside IPv6 (`::ffff:10.0.0.1`) counts as IPv4. */
export function isWithin(address: string, networks: readonly string[]): boolean {
  const plain = plainAddress(address);
  const family = familyOf(plain);
  if (family === undefined) return false;
  const list = new BlockList();
  for (const text of networks) {
    const network = readNetwork(text);
    if (network !== undefined) list.addSubnet(network.address, network.bits, network.family);
  }
  return list.check(plain, family);
}

interface Network {
  address: string;
  bits: number;
  family: "ipv4" | "ipv6";
}

function readNetwork(text: string): Network | undefined {
  const [, address = "", length] = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = familyOf(address);
  if (family === undefined) return undefined;
  const most = family === "ipv4" ? 32 : 128;
  const bits = length === undefined ? most : Number(length);
  return bits <= most ? { address, bits, family } : undefined;
}

function familyOf(address: string): "ipv4" | "ipv6" | undefined {
  const version = isIP(address);
  return version === 4 ? "ipv4" : version === 6 ? "ipv6" : undefined;
}

function plainAddress(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}
