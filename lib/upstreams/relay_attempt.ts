/** Attempts that relay the client's own body. */
import { quirkFor } from "../protocols/quirks/quirk.ts";
import { relayedReply } from "../protocols/relay.ts";
import type { UpstreamProtocol } from "../protocols/upstream_codec.ts";
import { relayFeed, RelayTranslator } from "./answer_feeds.ts";
import type { UpstreamAttempt, UpstreamAttemptOptions } from "./attempt.ts";
import { RELAYS, UPSTREAM_CODECS } from "./protocols.ts";
import { relayBody } from "./relay_body.ts";
import type { Call } from "./upstream.ts";

/** Relays the client's body with edited members. */
export function relayAttempt(call: Call, { protocol, quirk, origin, filter }: UpstreamAttemptOptions): UpstreamAttempt {
  const { client } = call;
  const relay = relayOf(protocol);
  const dialect = quirkFor(quirk, protocol);
  const body = relayBody(call, { relay, quirk: dialect });
  const codec = UPSTREAM_CODECS[protocol];
  return {
    protocol,
    body,
    stream(incoming) {
      const translator = new RelayTranslator(codec.reader(origin), relay.machine(client.echo));
      return { type: "frames", feed: relayFeed(incoming, { quirk: dialect, filter }, translator) };
    },
    whole(answer, texts) {
      const reply = codec.readReply(answer.value, { ...origin, ...(texts !== undefined && { texts }) });
      const shown = relay.keepReply?.(answer, client.echo) ?? answer;
      return { type: "text", text: relayedReply(shown, client.echo), reply };
    },
  };
}

function relayOf(protocol: UpstreamProtocol): typeof RELAYS[keyof typeof RELAYS] {
  if (protocol === "gemini") throw new TypeError("Cannot relay a protocol that no client speaks");
  return RELAYS[protocol];
}
