/** Finds the address of a client. */
import { isAddress, isWithin } from "../access/networks.ts";

/** Most addresses of `X-Forwarded-For` that are read. Real chains of proxies are far shorter. */
const MOST_HOPS = 32;

/** The peer, the forwarding header, and the trusted proxies. */
export interface ForwardedPeer {
  /** Address at the other end of the connection; absent where there is none, as on a Unix socket. */
  peer: string | undefined;
  /** Value of `X-Forwarded-For`: each proxy adds the address it was called from at the end. */
  forwardedFor: string | null;
  /** Networks of the proxies whose word counts. */
  trusted: readonly string[];
}

/**
 * Returns the client's address. It is the peer, unless the peer is a trusted proxy: then it is the right-most address
 * of `X-Forwarded-For` that is not a trusted proxy, or the left-most address if all are. Addresses that a client itself
 * puts into the header are left of those that proxies add, so they are never reached. If the header cannot be parsed up
 * to that address, the result is the peer.
 */
export function clientAddress({ peer, forwardedFor, trusted }: ForwardedPeer): string | undefined {
  if (peer === undefined || forwardedFor === null || !isWithin(peer, trusted)) return peer;
  const hops = forwardedFor.split(",").slice(-MOST_HOPS).map(bareAddress).reverse();
  for (const hop of hops) {
    if (!isAddress(hop)) return peer;
    if (!isWithin(hop, trusted)) return hop;
  }
  return hops.at(-1);
}

/** Without the port that some proxies write, and without brackets. */
function bareAddress(text: string): string {
  const hop = text.trim();
  const [, inBrackets] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(hop) ?? [];
  const [, withPort] = /^([\d.]+):\d{1,5}$/.exec(hop) ?? [];
  return inBrackets ?? withPort ?? hop;
}
