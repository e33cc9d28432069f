/** Prompts with plain contents: messages and tools that can be relayed without being decoded. */
import { type ContentSizes, type ScanPlan, shapes } from "../json/mod.ts";
import type { PlainSizes, Prompt } from "./canonical/types.ts";

/** The members of a protocol's body that have contents, and the forms in which these are plain. */
export type PlainContents = Omit<ScanPlan, "isWanted">;

type Contents = Pick<Prompt, "messages" | "tools">;

/** The form of a prompt-cache mark. */
export const cacheMark: shapes.Shape = shapes.nullable(
  shapes.object({ type: shapes.words("ephemeral"), ttl: shapes.nullable(shapes.words("5m", "1h")) }, [
    "type ?ttl=5m ?ttl=1h ?ttl=null",
  ], { isMark: true }),
);

/** Converts the sizes of a scanned body to those of a prompt. `issuer` is that of signatures without an envelope. */
export function plainSizes(
  { textBytes, texts, sealedBytes, sealed, rare, images, entries }: ContentSizes,
  { messages, issuer }: { messages: number; issuer: string },
): PlainSizes {
  return {
    textBytes,
    texts,
    messages,
    tools: entries.get("tools") ?? 0,
    signatures: sealed === 0 ? undefined : { bytes: sealedBytes, count: sealed, issuer },
    images,
    hasRareForms: rare > 0,
  };
}

/** Returns messages and tools, which are decoded at the first call. */
type ReadContents = () => Contents;

/**
 * The member with the function that returns the contents of a prompt. Spread copies lack it: they have messages and tools
 * as usual members.
 */
const CONTENTS = Symbol("contents");

/**
 * The getters of all prompts. They are shared because V8 keeps the getters of a hidden class: closures would keep a
 * request in memory until the next full collection.
 */
const GETTERS: PropertyDescriptorMap & ThisType<{ [CONTENTS]: ReadContents }> = {
  messages: {
    get() {
      return this[CONTENTS]().messages;
    },
    enumerable: true,
  },
  tools: {
    get() {
      return this[CONTENTS]().tools;
    },
    enumerable: true,
  },
};

/** The members of a prompt besides its contents. */
type Settings = Omit<Prompt, keyof Contents>;

/** Turns `settings` into a prompt whose messages and tools are decoded at the first access, and returns it. */
export function plainPrompt(settings: Settings, plain: PlainSizes, decode: () => Contents): Prompt {
  let decoded: Contents | undefined;
  return withContents(settings, plain, () => decoded ??= decode());
}

function withContents(settings: Settings, plain: PlainSizes, contents: ReadContents): Prompt {
  Object.defineProperty(settings, CONTENTS, { value: contents });
  Object.defineProperty(settings, "plain", { value: plain });
  Object.defineProperties(settings, GETTERS);
  return settings as Prompt;
}

/** Returns a copy of a prompt with some members replaced, or removed if `undefined`. Decodes nothing. */
export function withSettings(
  prompt: Prompt & { [CONTENTS]?: ReadContents },
  changes: { [Name in keyof Settings]?: Settings[Name] | undefined },
): Prompt {
  const { plain, [CONTENTS]: contents } = prompt;
  const settings: Record<string, unknown> = {};
  for (const name of Object.keys(prompt)) {
    const isSetting = contents === undefined || !Object.hasOwn(GETTERS, name);
    if (isSetting && !Object.hasOwn(changes, name)) settings[name] = prompt[name as keyof Prompt];
  }
  for (const [name, value] of Object.entries(changes)) if (value !== undefined) settings[name] = value;
  const copy = settings as unknown as Prompt;
  return plain === undefined || contents === undefined ? copy : withContents(copy, plain, contents);
}

/** The tools of a request, with which a tool choice is checked. `list` decodes them. */
export interface ToolList {
  count: number;
  list(): Prompt["tools"];
}
