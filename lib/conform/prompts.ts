/** The prompts of the suite, short and plain enough for any instructed model. */
import type { JsonObject } from "../json/mod.ts";

/** Answered with a word. */
export const READY = "Answer with the one word ready, and nothing else.";

/** Answered with far more than {@linkcode SHORT} tokens, by models that count and by those that repeat. */
export const LONG =
  "Count in words from one to one hundred and write every number. Begin like this and go on to the end: " +
  "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen, sixteen";

/** A limit that cuts {@linkcode LONG}; the smallest that OpenAI's responses take. */
export const SHORT = 16;

/** Ends an answer that repeats {@linkcode HALTING}. */
export const HALT = "HALT";

/** Names the stop sequence once. */
export const HALTING = `Repeat these words, with nothing before or after them: alpha beta ${HALT} gamma delta`;

/** A system prompt. */
export const SYSTEM = "You are a plain machine. You answer in as few words as you can, in lower case.";

/** Calls the first tool. */
export const WEATHER = "What is the weather in Paris? Use get_weather.";

/** Calls both tools. */
export const BOTH =
  'Call both tools now, at once:\ncall:get_weather {"city":"Paris"}\ncall:get_time {"zone":"Europe/Paris"}';

/** A tool without its protocol's form. */
export interface PlainTool {
  name: string;
  description: string;
  schema: JsonObject;
}

function textMember(name: string): JsonObject {
  return { type: "object", properties: { [name]: { type: "string" } }, required: [name], additionalProperties: false };
}

/** The tools of the suite. */
export const TOOLS: readonly [PlainTool, PlainTool] = [
  { name: "get_weather", description: "The weather in a city", schema: textMember("city") },
  { name: "get_time", description: "The time in a zone", schema: textMember("zone") },
];

/** A text that each tool's arguments must contain. */
export const ARGUMENTS: Readonly<Record<string, string>> = { get_weather: "city", get_time: "zone" };

/** The result of a tool. */
export const RESULT = "18 degrees, light rain";

/** Asks for {@linkcode PERSON}. */
export const MAKE_PERSON = "Make up a person. Give the name and the age as JSON.";

/** The same, itself in JSON: also for models that only repeat, at hosts that know no such format. */
export const LIKE_THIS = '{"task":"Answer with a JSON object that has these members","name":"Ada","age":36}';

/** A schema that strict modes take. */
export const PERSON: JsonObject = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
};

/** Why the text is no {@linkcode PERSON}; `undefined` where it is one. */
export function personProblem(text: string): string | undefined {
  try {
    const { name, age, ...rest } = Object(JSON.parse(text));
    if (typeof name !== "string") return "no text as name";
    if (!Number.isInteger(age)) return "no integer as age";
    return Object.keys(rest).length > 0 ? `more members: ${Object.keys(rest).join(", ")}` : undefined;
  } catch {
    return "no JSON";
  }
}

/** Asks about {@linkcode PICTURE}. */
export const SEE = "Which colour is this picture? One word.";

/** A red square of 64 by 64, PNG, base64. */
export const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsEty/aMYywi+hcEKLNO+FgEBAQEBAQEBAQEBAQEB" +
  "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQGBywLKp0DxvxLbjwAAAABJRU5ErkJggg==";

/** A member that no protocol has. */
export const UNKNOWN = "x_conform_unknown";

/** A model that no gateway has. */
export const NO_MODEL = "conform/there-is-no-such-model";

/** An invalid key. It must not come back in any answer. */
export const BAD_KEY = "sk-conform-0000-this-is-no-key-0000";
