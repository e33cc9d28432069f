/** The life of a text request, from top to bottom; `docs/architecture.md` has the same numbers. */
import type { RouteContext } from "../server/router.ts";
import type { Codec } from "../protocols/codec.ts";
import { admitRequest } from "./admit_request.ts";
import { findCandidates } from "./candidates.ts";
import { decodePrompt, readRequest } from "./read_request.ts";
import { openStream } from "./open_stream.ts";
import { sendForReply, sendForStream } from "./send_to_targets.ts";
import { RequestState } from "./state.ts";
import { planTargets } from "./targets.ts";
import { settleReply } from "./settle_reply.ts";
import { streamResponse, writeReply } from "./write_response.ts";

/** Answers one text request in the protocol of its client. @throws {GatewayError} for the app to write */
export async function serve(codec: Codec, request: Request, context: RouteContext): Promise<Response> {
  // 1. The app has matched the route and authenticated the key. From here on the request is metered.
  const state = new RequestState(codec, request, context);
  try {
    // 2. Read the body and take out of it what the key may not ask for.
    const body = await readRequest(state);
    // 3. Decode the canonical prompt, once.
    const prompt = await decodePrompt(body, state);
    // 4, 5. Find the models that the key may use and whose own rules the prompt keeps.
    const { candidates, preferences } = findCandidates(prompt, context, body.dropped);
    // 6. Take of limits and budgets what the request can need.
    const admitted = await admitRequest(candidates, body, state);
    // 7. Plan the targets, the best first.
    const targets = planTargets(admitted, { gateway: context.gateway, preferences, key: state.key });
    if (!prompt.stream) {
      // 8. Send to one target after another until one answers as a whole.
      const answer = await sendForReply(targets, state);
      // 11. Settle: the charge is durable before the first byte goes out.
      const settled = await settleReply(answer, state);
      // 12. Write the answer.
      return await writeReply(answer, settled, state);
    }
    // 8, 9. Send to one target after another until an answer begins; heartbeats where that takes long.
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
