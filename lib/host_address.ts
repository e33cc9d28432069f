/** Reads the address of a URL's host. */

/** Address of a host. */
export interface HostAddress {
  /** IPv6 addresses without brackets. */
  hostname: string;
  port: number;
  tls: boolean;
}

/** Returns the address of a URL's host, with the usual port if the URL names none. */
export function hostAddressOf({ protocol, hostname, port }: URL): HostAddress {
  const tls = protocol === "https:";
  const usualPort = tls ? 443 : 80;
  return { hostname: bareHostname(hostname), port: port === "" ? usualPort : Number(port), tls };
}

/** Returns the hostname of a URL without the brackets of an IPv6 address. */
export function bareHostname(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}
