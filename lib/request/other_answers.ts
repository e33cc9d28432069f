/**
 * Counts the answers beside the first of a request for several, for upstreams that report no usage. They are relayed to the
 * client, while the gateway reads the first alone.
 */
import type { ReplyTokens } from "../billing/count_prompt.ts";
import { ReplyTokenCounter } from "../billing/reply_token_counter.ts";
import { isObject, type Json, type JsonObject, parseDocument, parsePlain } from "../json/mod.ts";
import type { ContentBlock, Machine, Protocol, ReplyEvent } from "../protocols/canonical/types.ts";
import type { Frame } from "../protocols/codec.ts";
import { numberOf } from "../protocols/members.ts";
import { ANSWER_LIMITS } from "../upstreams/answers.ts";
import { UPSTREAM_CODECS } from "../upstreams/protocols.ts";

/** Members with the answers: of chat, and of Gemini. */
const LISTS = ["choices", "candidates"] as const;

/** Signatures are not read here, so no issuer matters. */
const ORIGIN = { issuer: "" };

/** Protocol and number of the requested answers. */
export interface SeveralAnswers {
  protocol: Protocol;
  /** Answers beyond this number were not requested, and are not counted. */
  n: number;
}

/** An answer beside the first, as if it were the only one. */
interface OtherAnswer {
  index: number;
  body: JsonObject;
}

/** The answers beside the first in a body, or in a chunk of a stream. */
function othersIn(body: Json | undefined, n: number): OtherAnswer[] {
  if (!isObject(body)) return [];
  return LISTS.flatMap((list) => {
    const answers = body[list];
    if (!Array.isArray(answers)) return [];
    return answers.flatMap((answer): OtherAnswer[] => {
      const index = isObject(answer) ? numberOf(answer.index) ?? 0 : 0;
      if (!isObject(answer) || !Number.isInteger(index) || index < 1 || index >= n) return [];
      return [{ index, body: { ...body, [list]: [{ ...answer, index: 0 }] } }];
    });
  });
}

/** The contents of the answers beside the first in a whole answer's text, which was parsed before without an error. */
export async function otherBlocks(text: string, { protocol, n }: SeveralAnswers): Promise<ContentBlock[]> {
  const { value } = await parseDocument(text, { limits: ANSWER_LIMITS });
  return othersIn(value, n).flatMap(({ body }) => {
    try {
      return UPSTREAM_CODECS[protocol].readReply(body, ORIGIN).blocks;
    } catch {
      return [];
    }
  });
}

/** The running count of the answers beside the first of a stream. */
export class OtherAnswers {
  readonly #request: SeveralAnswers;
  readonly #answers = new Map<number, { reader: Machine<Frame, ReplyEvent>; counter: ReplyTokenCounter }>();

  constructor(request: SeveralAnswers) {
    this.#request = request;
  }

  /** Adds the next frames of the stream. */
  push(frames: readonly Frame[]): void {
    for (const { event, data } of frames) {
      for (const { index, body } of othersIn(parse(data), this.#request.n)) {
        const { reader, counter } = this.#answer(index);
        const frame = { ...(event !== undefined && { event }), data: JSON.stringify(body) };
        for (const found of reader.push(frame)) void counter.push(found);
      }
    }
  }

  /** Returns the tokens of all frames so far. No frame may follow. */
  async finish(): Promise<ReplyTokens> {
    const sum = { completion: 0, reasoning: 0 };
    for (const { reader, counter } of this.#answers.values()) {
      for (const found of reader.end()) void counter.push(found);
      const { completion, reasoning } = await counter.finish();
      sum.completion += completion;
      sum.reasoning += reasoning;
    }
    return sum;
  }

  #answer(index: number): { reader: Machine<Frame, ReplyEvent>; counter: ReplyTokenCounter } {
    let answer = this.#answers.get(index);
    if (answer === undefined) {
      answer = { reader: UPSTREAM_CODECS[this.#request.protocol].reader(ORIGIN), counter: new ReplyTokenCounter() };
      this.#answers.set(index, answer);
    }
    return answer;
  }
}

function parse(text: string): Json | undefined {
  try {
    return parsePlain(text);
  } catch {
    return undefined;
  }
}
