/** Ollama. Its whole calls without an index, and its errors that are a text, are read everywhere. */
import { compatible } from "./compatible.ts";
import type { Quirk } from "./quirk.ts";

/** Ollama is an ordinary compatible server as far as requests go. */
export const ollama: Quirk = compatible;
