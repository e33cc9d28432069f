/** Contents of requests that need not be decoded to be relayed. */
import { type ContentSizes, type ScanPlan, type Shape, shapes } from "../json/mod.ts";
import type { PlainSizes, Prompt } from "./canonical/types.ts";

/** The members of a protocol's body that hold the prompt, and the forms in which they are relayed without being decoded. */
export type PlainContents = Omit<ScanPlan, "isWanted">;

/** Messages and tools of a prompt. */
type Contents = Pick<Prompt, "messages" | "tools">;

/** A mark of the prompt cache. */
export const cacheMark: Shape = shapes.nullable(
  shapes.object({ type: shapes.words("ephemeral"), ttl: shapes.nullable(shapes.words("5m", "1h")) }, [
    "type ?ttl=5m ?ttl=1h ?ttl=null",
  ], { isMark: true }),
);

/** Sizes of a prompt. `issuer`: of signatures without an envelope. */
export function plainSizes(
  { textBytes, texts, sealedBytes, sealed, rare, entries }: ContentSizes,
  { messages, issuer }: { messages: number; issuer: string },
): PlainSizes {
  return {
    textBytes,
    texts,
    messages,
    tools: entries.get("tools") ?? 0,
    signatures: sealed === 0 ? undefined : { bytes: sealedBytes, count: sealed, issuer },
    hasRareForms: rare > 0,
  };
}

/** A prompt whose messages and tools are decoded when one of them is first read. The settings become the prompt. */
export function plainPrompt(
  settings: Omit<Prompt, keyof Contents>,
  sizes: PlainSizes,
  decode: () => Contents,
): Prompt {
  let decoded: Contents | undefined;
  const contents = () => decoded ??= decode();
  Object.defineProperty(settings, "plain", { value: sizes });
  Object.defineProperty(settings, "messages", { get: () => contents().messages, enumerable: true });
  Object.defineProperty(settings, "tools", { get: () => contents().tools, enumerable: true });
  return settings as Prompt;
}

/** The tools of a request, as far as the choice among them is concerned. */
export interface ToolList {
  count: number;
  list(): Prompt["tools"];
}
