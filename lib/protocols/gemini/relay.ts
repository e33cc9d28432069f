/**
 * Relays generateContent. Edits: the model id in every piece. The model and the streaming mode of the request are in the
 * URL. Pieces that may end the answer are held back until more content or the end of the stream.
 */
import type { Frame } from "../codec.ts";
import { type Relay, withModel } from "../relay.ts";
import { streamWriter } from "./write_stream.ts";

const MODEL = "modelVersion";

/** A finish reason: a piece without one is not the last with content. */
const FINISH = /"finishReason"\s*:\s*"/;
/** Content: pieces without any may follow the finish reason, with the usage. */
const CONTENT = /"parts"\s*:/;

/** Relays generateContent. */
export const geminiRelay: Relay = {
  replyModel: MODEL,
  modelEdits: () => ({ model: undefined, stream: undefined }),
  machine(echo) {
    let queued: Frame[] = [];
    return {
      push(frame) {
        const edited = { ...frame, data: withModel(frame, [MODEL], echo.model) };
        if (queued.length > 0 && !CONTENT.test(frame.data)) {
          queued.push(edited);
          return [];
        }
        const passed = queued;
        queued = FINISH.test(frame.data) ? [edited] : [];
        return queued.length > 0 ? passed : [...passed, edited];
      },
      end() {
        const last = queued;
        queued = [];
        return last;
      },
      fail(error) {
        // It would end the answer.
        queued = [];
        return streamWriter(echo).push({ type: "error", error });
      },
    };
  },
};
