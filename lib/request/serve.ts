/** Serves a text request from start to end. The steps have the numbers of docs/explanation/architecture.md. */
import type { RouteContext } from "../server/router.ts";
import type { Codec } from "../protocols/codec.ts";
import { admitRequest } from "./admit_request.ts";
import { findCandidates } from "./candidates.ts";
import { findConversation } from "./conversation.ts";
import { decodePrompt, readRequest } from "./read_request.ts";
import { openStream } from "./open_stream.ts";
import { sendForReply, sendForStream } from "./send_to_targets.ts";
import { RequestState } from "./state.ts";
import { planTargets } from "./targets.ts";
import { settleReply } from "./settle_reply.ts";
import { streamResponse, writeReply } from "./write_response.ts";

/** Answers one text request in the protocol of its client. @throws {GatewayError} the error for the client */
export async function serve(codec: Codec, request: Request, context: RouteContext): Promise<Response> {
  // 1. The app has matched the route and authenticated the key. From here on the request is metered.
  const state = new RequestState(codec, request, context);
  try {
    // 2. Read the body, check it against the protocol's schema, and drop or refuse what the key may not use.
    const body = await readRequest(state);
    // 3. Decode the canonical prompt. Messages that a scan recognized are decoded only if a later step reads them.
    const prompt = await decodePrompt(body, codec);
    // 4, 5. Find the models that the key may use, and check the prompt against each model's rules.
    const { candidates, preferences } = findCandidates(prompt, state, body);
    // 6. Reserve limits and budget for the most that the request can use.
    const admitted = await admitRequest(candidates, body, state);
    // 7. Plan the targets, the best first.
    const targets = planTargets(admitted, {
      gateway: context.gateway,
      preferences,
      key: state.caller.keyId,
      findConversation: () => state.conversation = findConversation(body.body, state),
    });
    if (!prompt.stream) {
      // 8. Call one target after another until one returns a whole answer.
      const answer = await sendForReply(targets, state);
      // 11. Settle: the ledger entry is durable before the first byte goes out.
      const settled = await settleReply(answer, state);
      // 12. Write the answer.
      return await writeReply(answer, settled, state);
    }
    // 8, 9. Call one target after another until a first event arrives; send keep-alives if that takes long.
    const loop = openStream(state);
    const opening = sendForStream(targets, loop, state);
    const isInTime = await loop.opensInTime(opening);
    // 10, 11, 12. The stream loop reads, translates, meters, settles and writes from here on.
    return streamResponse(loop, isInTime, state);
  } catch (thrown) {
    throw await state.fail(thrown);
  } finally {
    state.end();
  }
}
