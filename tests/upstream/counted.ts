/** Answers of chat upstreams with a test's own token counts. */
import { frames, whole } from "./frames.ts";
import type { ScriptedAnswer } from "./mod.ts";

/** A part of an answer, or all of it, with other numbers in its usage. */
export function withUsage(text: string, { prompt, completion }: { prompt: number; completion: number }): string {
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  return text.replaceAll(/"usage":\{.*?\}\}/g, () => `"usage":${JSON.stringify(usage)}`);
}

/** An answer with this number of tokens to a prompt of 7. It waits before the end of a stream. */
export function countedAnswer(
  stream: boolean,
  { completion, going }: { completion: number; going: () => Promise<void> },
): ScriptedAnswer {
  const tell = (text: string) => withUsage(text, { prompt: 7, completion });
  if (!stream) return { steps: [tell(whole("chat", "Hello", "reported"))] };
  const { opening, pieces, ending } = frames("chat", ["Hello ", "there"], "reported");
  return { steps: [...opening, ...pieces, going(), ...ending.map(tell)] };
}
