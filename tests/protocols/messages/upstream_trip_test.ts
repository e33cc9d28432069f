import { assertEquals } from "@std/assert";
import { objectsOf } from "../../../lib/protocols/members.ts";
import { messagesUpstream } from "../../../lib/protocols/messages/upstream.ts";
import { PROTOCOLS } from "../../golden/crossings.ts";
import { replay } from "../../golden/round_trips.ts";
import { writeAdapted } from "../translate/targets.ts";
import { accumulate } from "./accumulate.ts";
import { framesOf, ORIGIN } from "./upstream_answers.ts";
import { targetOf } from "./upstream_targets.ts";

for (const client of PROTOCOLS) {
  Deno.test(`thinking returns through clients of ${client} as the vendor sent it`, async () => {
    for (const name of ["thinking", "hidden_thinking", "two_signatures"]) {
      const sent = accumulate(await framesOf(name));
      const { messages } = writeAdapted(
        messagesUpstream,
        replay(messagesUpstream.readReply(sent, ORIGIN), client),
        targetOf(),
      );
      const content = objectsOf(messages)[1]?.content;
      assertEquals<unknown>(
        typeof content === "string" ? [{ type: "text", text: content }] : content,
        sent.content,
        name,
      );
    }
  });
}
