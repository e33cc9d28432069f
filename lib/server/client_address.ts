/** Where a request comes from. */
import { isAddress, isWithin } from "../access/networks.ts";

/** Most addresses of `X-Forwarded-For` that are looked at. Nobody has more proxies one behind another. */
const MOST_HOPS = 32;

/** What is known of the way a request took. */
export interface Way {
  /** Address at the other end of the connection; absent where there is none, as on a Unix socket. */
  peer: string | undefined;
  /** Value of `X-Forwarded-For`: each proxy adds the address it was called from at the end. */
  forwardedFor: string | null;
  /** Networks of the proxies whose word counts. */
  trusted: readonly string[];
}

/**
 * The client's address: the peer, or, where the peer is a trusted proxy, the right-most address of `X-Forwarded-For`
 * that is none; where all are, the left-most. What a client writes into that header stands left of what the proxies
 * add, and is never reached. Where the header cannot be read so far, it is the peer.
 */
export function clientAddress({ peer, forwardedFor, trusted }: Way): string | undefined {
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
