/**
 * Relays generateContent. Edits: the model id in every piece, and in requests the members for model and streaming mode,
 * which are in the URL. Pieces that may end the answer are held back until more content comes or the stream ends.
 */
import type { Frame } from "../codec.ts";
import { type Relay, withModel } from "../relay.ts";
import { streamWriter } from "./write_stream.ts";

const MODEL_MEMBER = "modelVersion";

/** Matches a finish reason. A piece without one is not the last piece with content. */
const FINISH = /"finishReason"\s*:\s*"/;
/** Matches content. Pieces without content may follow the finish reason, such as one with the usage. */
const CONTENT = /"parts"\s*:/;

/** The relay of generateContent. */
export const geminiRelay: Relay = {
  replyModel: MODEL_MEMBER,
  modelEdits: () => ({ model: undefined, stream: undefined }),
  machine(context) {
    let held: Frame[] = [];
    return {
      push(frame) {
        const edited = { ...frame, data: withModel(frame, [MODEL_MEMBER], context.model) };
        if (held.length > 0 && !CONTENT.test(frame.data)) {
          held.push(edited);
          return [];
        }
        const passed = held;
        held = FINISH.test(frame.data) ? [edited] : [];
        return held.length > 0 ? passed : [...passed, edited];
      },
      end() {
        const last = held;
        held = [];
        return last;
      },
      fail(error) {
        // The held pieces would end the answer.
        held = [];
        return streamWriter(context).push({ type: "error", error });
      },
    };
  },
};
