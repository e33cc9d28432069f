/** Correct answers in every upstream protocol, from which faults are made. */
import type { Protocol } from "../../../../lib/protocols/canonical/types.ts";
import { frames, whole } from "../../../upstream/frames.ts";
import { errorBody, errorFrame } from "../../../upstream/replies.ts";

/** The protocols of upstreams. */
export const SPOKEN = ["chat", "responses", "messages", "gemini"] as const satisfies readonly Protocol[];

/** The answer's text in pieces, with characters of two and of four bytes, for cuts within one. */
export const PIECES: readonly string[] = Array.from({ length: 8 }, (_, index) => `wörd ${index} 🙂 `);

/** The same as one text. */
export const TEXT = PIECES.join("");

/** An answer in its parts. */
export interface SoundAnswer {
  spoken: Protocol;
  stream: boolean;
  /** Resolves when the client has read some of the text; it may not be asked to. */
  read?: Promise<void>;
  /** Frames of a stream: before any text, one for each piece of text, the end. */
  opening: readonly string[];
  pieces: readonly string[];
  ending: readonly string[];
  /** The answer without streaming. */
  whole: string;
  /** An error as a frame, and as a body. */
  errorFrame: string;
  errorBody: string;
}

/** A sound answer. */
export function soundAnswer(spoken: Protocol, stream: boolean): SoundAnswer {
  if (spoken === "gemini") return { spoken, stream, ...gemini() };
  return {
    spoken,
    stream,
    ...frames(spoken, PIECES, "reported"),
    whole: whole(spoken, TEXT, "reported"),
    errorFrame: errorFrame(spoken, "The upstream's own words"),
    errorBody: JSON.stringify(errorBody(spoken, "The upstream's own words")),
  };
}

/** Every frame of a stream, as one text. */
export function streamOf({ opening, pieces, ending }: Pick<SoundAnswer, "opening" | "pieces" | "ending">): string {
  return [...opening, ...pieces, ...ending].join("");
}

/** The same answer with other texts in all of its parts. */
export function changed(answer: SoundAnswer, change: (text: string) => string): SoundAnswer {
  const { opening, pieces, ending, whole } = answer;
  return {
    ...answer,
    opening: opening.map(change),
    pieces: pieces.map(change),
    ending: ending.map(change),
    whole: change(whole),
  };
}

function gemini(): Omit<SoundAnswer, "spoken" | "stream"> {
  const usageMetadata = {
    promptTokenCount: 11,
    cachedContentTokenCount: 4,
    candidatesTokenCount: 5,
    totalTokenCount: 16,
  };
  const reply = (text: string, more: Record<string, string> = {}, usage = {}) =>
    JSON.stringify({
      candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0, ...more }],
      ...usage,
      modelVersion: "real-one",
      responseId: "one",
    });
  const error = JSON.stringify({ error: { code: 500, message: "The upstream's own words", status: "INTERNAL" } });
  return {
    opening: [`data: ${reply("")}\n\n`],
    pieces: PIECES.map((text) => `data: ${reply(text)}\n\n`),
    ending: [`data: ${reply("", { finishReason: "STOP" }, { usageMetadata })}\n\n`],
    whole: reply(TEXT, { finishReason: "STOP" }, { usageMetadata }),
    errorFrame: `data: ${error}\n\n`,
    errorBody: error,
  };
}
