/** Edits of a body: its value and its text change together. */
import type { JsonBody } from "../server/router.ts";
import { type Json, type JsonPath, removePath, scanMembers, spliceMembers, writeJson } from "../json/mod.ts";

/** The edits of one body. */
export class BodyEdits {
  readonly #body: JsonBody;
  /** New values of members; `undefined` where one goes. */
  readonly #values: Record<string, Json | undefined> = {};
  readonly #texts: Record<string, string | undefined> = {};

  constructor(body: JsonBody) {
    this.#body = body;
  }

  /** Removes a member. */
  remove(name: string): void {
    this.#values[name] = undefined;
    this.#texts[name] = undefined;
  }

  /** Replaces a member. */
  set(name: string, value: Json): void {
    this.#values[name] = value;
    this.#texts[name] = writeJson(value);
  }

  /** A list with other contents, whose text keeps the client's spelling. */
  cut(name: string, value: Json[], cuts: readonly JsonPath[]): void {
    const { text, members } = this.#body;
    const member = members.find((member) => member.name === name);
    this.#values[name] = value;
    this.#texts[name] = member === undefined
      ? writeJson(value)
      : cuts.toReversed().reduce(removePath, text.slice(member.start, member.end));
  }

  /** The body with its edits. */
  apply(): JsonBody {
    if (Object.keys(this.#texts).length === 0) return this.#body;
    const value = Object.fromEntries(
      Object.entries({ ...this.#body.value, ...this.#values }).filter(([, value]) => value !== undefined),
    );
    return { ...scanMembers(spliceMembers(this.#body, this.#texts)), value };
  }
}
