/** Reads JSON that is mostly base64: images are cut out as they arrive and the small rest is parsed. */
import { GatewayError } from "../../errors.ts";
import { type Json, parseJson } from "../../json/mod.ts";

/** Chunks of base64 as in the JSON text, escapes included. */
export type RawImage = readonly string[];

/** Incremental reader of one JSON text. */
export interface ImageCutter {
  /** Reads the next text and returns the images that end in it. @throws {GatewayError} `upstream` above a limit */
  push(text: string): RawImage[];
  /**
   * Parses the rest, with images replaced by short strings.
   * @throws {GatewayError} `upstream` for invalid or incomplete JSON
   */
  end(): Json;
}

/** Longest image in base64 characters: three times an uncompressed image of 3840x2160 pixels. */
const IMAGE_LENGTH = 128 * 1024 * 1024;

/** Longest text besides the images, in characters; enough for many revised prompts. */
const REST_LENGTH = 4 * 1024 * 1024;

/** Characters of a member name that are compared. */
const NAME_LENGTH = 16;

/**
 * Creates a reader.
 * @param where `answer`: images are the members `b64_json` of the objects in the list `data`; `event`: the text itself
 * is one object with such a member
 */
export function imageCutter(where: "answer" | "event"): ImageCutter {
  const place = where === "answer" ? "{[{" : "{";
  const rest: string[] = [];
  let restLength = 0;
  const levels: string[] = [];
  /** Last of `{ [ , :` outside strings; tells names from values. */
  let mark = "";
  let inString = false;
  let escaped = false;
  /** Latest member name, latest name in the outermost object, and whether a name is being read. */
  let name = "";
  let topName = "";
  let inName = false;
  /** Image being read. */
  let image: string[] | undefined;
  let imageLength = 0;
  let count = 0;

  function keep(text: string): void {
    restLength += text.length;
    if (restLength > REST_LENGTH) throw new GatewayError("upstream", "Cannot read the upstream's answer: too long");
    rest.push(text);
  }

  function isImageNext(): boolean {
    return mark === ":" && name === "b64_json" && levels.length === place.length && levels.join("") === place &&
      (where === "event" || topName === "data");
  }

  /** Reads a character outside images; true if an image starts after it. */
  function step(letter: string): boolean {
    if (inString) {
      if (escaped) escaped = false;
      else if (letter === "\\") escaped = true;
      else if (letter === '"') {
        inString = false;
        if (inName && levels.length === 1) topName = name;
        return false;
      }
      if (inName && name.length < NAME_LENGTH) name += letter;
      return false;
    }
    switch (letter) {
      case '"':
        if (isImageNext()) return true;
        inString = true;
        inName = mark !== ":" && levels.at(-1) === "{";
        if (inName) name = "";
        return false;
      case "{":
      case "[":
        levels.push(letter);
        mark = letter;
        return false;
      case "}":
      case "]":
        levels.pop();
        return false;
      case ",":
      case ":":
        mark = letter;
    }
    return false;
  }

  /** Reads a part of an image; returns its end or the end of the text. */
  function takeImage(text: string, { at, into }: { at: number; into: string[] }): number {
    // Base64 contains no quotes.
    const quote = text.indexOf('"', at);
    const end = quote < 0 ? text.length : quote;
    imageLength += end - at;
    if (imageLength > IMAGE_LENGTH) {
      throw new GatewayError("upstream", "Cannot read the upstream's answer: an image is too large");
    }
    into.push(text.slice(at, end));
    return end;
  }

  return {
    push(text) {
      const done: RawImage[] = [];
      let at = 0;
      let from = 0;
      while (at < text.length) {
        if (image !== undefined) {
          from = at = takeImage(text, { at, into: image });
          if (at === text.length) break;
          done.push(image);
          image = undefined;
          imageLength = 0;
          at++;
          continue;
        }
        if (step(text.charAt(at++))) {
          keep(`${text.slice(from, at)}${count++}`);
          image = [];
          from = at;
        }
      }
      if (image === undefined) keep(text.slice(from));
      return done;
    },
    end() {
      try {
        return parseJson(rest.join(""));
      } catch (cause) {
        throw new GatewayError("upstream", "Cannot read the upstream's answer: expected JSON", { cause });
      }
    },
  };
}
