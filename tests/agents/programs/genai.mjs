/** `@google/genai` over the Gemini protocol. */
import { GoogleGenAI } from "@google/genai";
import { clock, expect, PNG, QUESTIONS, runChecks, SLOW, TWO_IMAGES, ZONE } from "./checks.mjs";

const NAME = process.env.SLUICE_CLIENT;

await runChecks(NAME, ({ url, key, model }) => {
  const ai = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
  const tools = [{ functionDeclarations: [{ name: "clock", description: "The time", parametersJsonSchema: ZONE }] }];
  const { additionalProperties: _, ...OPENAPI } = ZONE;
  const openapi = [{ functionDeclarations: [{ name: "clock", description: "The time", parameters: OPENAPI }] }];
  return {
    async streaming() {
      let text = "";
      for await (const chunk of await ai.models.generateContentStream({ model, contents: "Plain words" })) {
        text += chunk.text ?? "";
      }
      expect(text, "Plain words");
    },
    async tools() {
      for (const streamed of [false, true]) {
        const chat = ai.chats.create({ model, config: { tools: streamed ? openapi : tools } });
        const send = async (message) => {
          if (!streamed) return await chat.sendMessage({ message });
          const whole = { text: "", functionCalls: [] };
          for await (const chunk of await chat.sendMessageStream({ message })) {
            whole.text += chunk.text ?? "";
            whole.functionCalls.push(...chunk.functionCalls ?? []);
          }
          return whole;
        };
        for (const [question, wanted] of QUESTIONS) {
          const { functionCalls = [] } = await send(question);
          const answer = await send(functionCalls.map(({ id, name, args }) => ({
            functionResponse: { ...(id !== undefined && { id }), name, response: { result: clock(args) } },
          })));
          expect(answer.text, wanted);
        }
        expect((await send("Thanks")).text, "Thanks");
      }
    },
    async images() {
      const image = { inlineData: { mimeType: "image/png", data: PNG } };
      const { text } = await ai.models.generateContent({ model, contents: ["Two.", image, image] });
      expect(text, TWO_IMAGES);
    },
    async object() {
      const { text } = await ai.models.generateContent({
        model,
        contents: '{"city":"Oslo"}',
        config: {
          responseMimeType: "application/json",
          responseSchema: { type: "OBJECT", properties: { city: { type: "STRING" } }, required: ["city"] },
        },
      });
      expect(JSON.parse(text), { city: "Oslo" });
    },
    async lists() {
      const { totalTokens } = await ai.models.countTokens({ model, contents: "Plain words" });
      expect(totalTokens > 0, true);
      const names = [];
      for await (const { name } of await ai.models.list()) names.push(name);
      expect(names.includes(`models/${model}`), true);
      expect((await ai.models.get({ model })).name, `models/${model}`);
    },
    async abort() {
      const leaving = new AbortController();
      try {
        const config = { abortSignal: leaving.signal };
        for await (const _ of await ai.models.generateContentStream({ model, contents: SLOW, config })) leaving.abort();
      } catch (error) {
        if (!leaving.signal.aborted) throw error;
      }
      expect((await ai.models.generateContent({ model, contents: "Back" })).text, "Back");
    },
  };
});
