/** Reads JSON that is mostly base64: cuts out the images as they arrive, and parses the small rest. */
import { GatewayError } from "../../errors.ts";
import { type Json, parseJson } from "../../json/mod.ts";

/** An image as chunks of base64, as in the JSON text with its escapes. */
export type RawImage = readonly string[];

/** Longest image in base64 characters: three times an uncompressed image of 3840x2160 pixels. */
const MAX_IMAGE_LENGTH = 128 * 1024 * 1024;

/** Longest text besides the images, in characters. It is enough for many revised prompts. */
const MAX_REST_LENGTH = 4 * 1024 * 1024;

/** Characters of a member name that are kept for comparison. */
const MAX_NAME_LENGTH = 16;

/** Incremental reader of one JSON text. */
export class ImageCutter {
  readonly #where: "answer" | "event";
  /** The open brackets around an image. */
  readonly #imagePath: "{[{" | "{";
  readonly #rest: string[] = [];
  #restLength = 0;
  readonly #levels: string[] = [];
  /** The last of `{ [ , :` outside strings. It distinguishes names from values. */
  #lastMark = "";
  #inString = false;
  #escaped = false;
  /** The latest member name. */
  #name = "";
  /** The latest member name in the outermost object. */
  #topName = "";
  /** True while a name is being read. */
  #inName = false;
  #image: string[] | undefined;
  #imageLength = 0;
  #count = 0;

  /**
   * @param where `answer`: images are the members `b64_json` of the objects in the list `data`; `event`: the text itself
   * is one object with such a member
   */
  constructor(where: "answer" | "event") {
    this.#where = where;
    this.#imagePath = where === "answer" ? "{[{" : "{";
  }

  /** Reads the next text. @returns the images that end in it @throws {GatewayError} `upstream` above a limit */
  push(text: string): RawImage[] {
    const finished: RawImage[] = [];
    let at = 0;
    let from = 0;
    while (at < text.length) {
      if (this.#image !== undefined) {
        from = at = this.#takeImage(text, { at, into: this.#image });
        if (at === text.length) break;
        finished.push(this.#image);
        this.#image = undefined;
        this.#imageLength = 0;
        at++;
        continue;
      }
      // `#keep` refuses the text below.
      if (at - from > MAX_REST_LENGTH) break;
      if (this.#step(text.charAt(at++))) {
        this.#keep(`${text.slice(from, at)}${this.#count++}`);
        this.#image = [];
        from = at;
      }
    }
    if (this.#image === undefined) this.#keep(text.slice(from));
    return finished;
  }

  /**
   * Parses the rest, in which each image is replaced by a short string.
   * @throws {GatewayError} `upstream` for invalid or incomplete JSON
   */
  end(): Json {
    try {
      return parseJson(this.#rest.join(""));
    } catch (cause) {
      throw new GatewayError("upstream", "Cannot read the upstream's answer: expected JSON", { cause });
    }
  }

  #keep(text: string): void {
    this.#restLength += text.length;
    if (this.#restLength > MAX_REST_LENGTH) {
      throw new GatewayError("upstream", "Cannot read the upstream's answer: too long");
    }
    this.#rest.push(text);
  }

  #isImageNext(): boolean {
    return this.#lastMark === ":" && this.#name === "b64_json" && this.#levels.length === this.#imagePath.length &&
      this.#levels.join("") === this.#imagePath &&
      (this.#where === "event" || this.#topName === "data");
  }

  /** Reads a character outside images. @returns true if an image starts after it */
  #step(letter: string): boolean {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (letter === "\\") this.#escaped = true;
      else if (letter === '"') {
        this.#inString = false;
        if (this.#inName && this.#levels.length === 1) this.#topName = this.#name;
        return false;
      }
      if (this.#inName && this.#name.length < MAX_NAME_LENGTH) this.#name += letter;
      return false;
    }
    switch (letter) {
      case '"':
        if (this.#isImageNext()) return true;
        this.#inString = true;
        this.#inName = this.#lastMark !== ":" && this.#levels.at(-1) === "{";
        if (this.#inName) this.#name = "";
        return false;
      case "{":
      case "[":
        this.#levels.push(letter);
        this.#lastMark = letter;
        return false;
      case "}":
      case "]":
        this.#levels.pop();
        return false;
      case ",":
      case ":":
        this.#lastMark = letter;
    }
    return false;
  }

  /** Reads a part of an image. @returns the end of the image, or the end of the text */
  #takeImage(text: string, { at, into }: { at: number; into: string[] }): number {
    // Base64 contains no quotes.
    const quote = text.indexOf('"', at);
    const end = quote < 0 ? text.length : quote;
    this.#imageLength += end - at;
    if (this.#imageLength > MAX_IMAGE_LENGTH) {
      throw new GatewayError("upstream", "Cannot read the upstream's answer: an image is too large");
    }
    into.push(text.slice(at, end));
    return end;
  }
}
