/**
 * Counts the tokens of all answers but the first if a request asks for several (`n`) and the upstream reports no usage.
 * All answers are relayed to the client, but the rest of the gateway reads only the first.
 */
import type { ReplyTokens } from "../billing/count_prompt.ts";
import { ReplyTokenCounter } from "../billing/reply_token_counter.ts";
import { isObject, type Json, type JsonObject, parseDocument, parsePlain, tryParse } from "../json/mod.ts";
import type { ContentBlock, Machine, Protocol, ReplyEvent } from "../protocols/canonical/types.ts";
import type { Frame } from "../protocols/codec.ts";
import { numberOf } from "../protocols/members.ts";
import { ANSWER_LIMITS } from "../upstreams/answers.ts";
import { UPSTREAM_CODECS } from "../upstreams/protocols.ts";

/** Members that list the answers, in chat and in Gemini. */
const ANSWER_LISTS = ["choices", "candidates"] as const;

/** Placeholder: signatures are not used here, so their issuer does not matter. */
const ANY_ORIGIN = { issuer: "" };

/** Protocol and number of the requested answers. */
export interface SeveralAnswers {
  protocol: Protocol;
  /** Answers beyond this number were not requested, and are not counted. */
  n: number;
}

/** An answer other than the first. */
interface OtherAnswer {
  index: number;
  /** The body, as if this answer were the only one. */
  body: JsonObject;
}

/** Returns the answers other than the first in a body, or in a chunk of a stream. */
function othersIn(body: Json | undefined, n: number): OtherAnswer[] {
  if (!isObject(body)) return [];
  return ANSWER_LISTS.flatMap((list) => {
    const answers = body[list];
    if (!Array.isArray(answers)) return [];
    return answers.flatMap((answer): OtherAnswer[] => {
      const index = isObject(answer) ? numberOf(answer.index) ?? 0 : 0;
      if (!isObject(answer) || !Number.isInteger(index) || index < 1 || index >= n) return [];
      return [{ index, body: { ...body, [list]: [{ ...answer, index: 0 }] } }];
    });
  });
}

/** Returns the contents of all answers but the first in a body that is not streamed. Its text must be valid JSON. */
export async function otherBlocks(text: string, { protocol, n }: SeveralAnswers): Promise<ContentBlock[]> {
  const { value } = await parseDocument(text, { limits: ANSWER_LIMITS });
  return othersIn(value, n).flatMap(({ body }) => {
    try {
      return UPSTREAM_CODECS[protocol].readReply(body, ANY_ORIGIN).blocks;
    } catch {
      return [];
    }
  });
}

/** Counts the tokens of all answers but the first in a stream. */
export class OtherAnswers {
  readonly #requested: SeveralAnswers;
  readonly #answers = new Map<number, { reader: Machine<Frame, ReplyEvent>; counter: ReplyTokenCounter }>();

  constructor(requested: SeveralAnswers) {
    this.#requested = requested;
  }

  /** Adds the next frames of the stream. */
  push(frames: readonly Frame[]): void {
    for (const { event, data } of frames) {
      for (const { index, body } of othersIn(tryParse(data, parsePlain), this.#requested.n)) {
        const { reader, counter } = this.#answer(index);
        const frame = { ...(event !== undefined && { event }), data: JSON.stringify(body) };
        for (const replyEvent of reader.push(frame)) void counter.push(replyEvent);
      }
    }
  }

  /** Returns the tokens of all frames. No frame may be added afterwards. */
  async finish(): Promise<ReplyTokens> {
    const sum = { completion: 0, reasoning: 0 };
    for (const { reader, counter } of this.#answers.values()) {
      for (const replyEvent of reader.end()) void counter.push(replyEvent);
      const { completion, reasoning } = await counter.finish();
      sum.completion += completion;
      sum.reasoning += reasoning;
    }
    return sum;
  }

  #answer(index: number): { reader: Machine<Frame, ReplyEvent>; counter: ReplyTokenCounter } {
    let answer = this.#answers.get(index);
    if (answer === undefined) {
      answer = {
        reader: UPSTREAM_CODECS[this.#requested.protocol].reader(ANY_ORIGIN),
        counter: new ReplyTokenCounter(),
      };
      this.#answers.set(index, answer);
    }
    return answer;
  }
}
