/** Writes events as JSON, but each list of log probabilities only once: four events of an answer repeat all of them. */
import type { TokenLogprob } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

type Tokens = readonly TokenLogprob[];

/** The JSON of each list. */
const TEXTS = new WeakMap<Tokens, string>();
/** The lists of which a longer one is made. */
const PIECES = new WeakMap<Tokens, readonly Tokens[]>();

/** Stands for a list while the JSON around it is written. */
const MARK = "\ue000logprobs\ue000";

/** Keeps the lists of which a complete list is made. */
export function keepPieces(tokens: Tokens, pieces: readonly Tokens[]): void {
  PIECES.set(tokens, pieces);
}

/** Writes an event as JSON. Without kept texts, 24,000 tokens take 0.7 s at the end of an answer. */
export function writeWithKeptTexts(event: JsonObject): string {
  const texts: string[] = [];
  const json = JSON.stringify(event, (name, member) => {
    if (name !== "logprobs" || !Array.isArray(member) || member.length === 0) return member;
    texts.push(textOf(member));
    return MARK;
  });
  const [first = "", ...others] = json.split(`"${MARK}"`);
  // The model may have written the mark, too.
  if (others.length !== texts.length) return JSON.stringify(event);
  return others.reduce((joined, other, index) => joined + (texts[index] ?? "") + other, first);
}

function textOf(tokens: Tokens): string {
  let text = TEXTS.get(tokens);
  if (text === undefined) {
    const pieces = PIECES.get(tokens);
    text = pieces === undefined
      ? JSON.stringify(tokens)
      : `[${pieces.map((piece) => textOf(piece).slice(1, -1)).join(",")}]`;
    TEXTS.set(tokens, text);
  }
  return text;
}
