// The official clients against a running yoke serve: node apis.mjs URL. Prints a line for each thing that works.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const load = async (name) => (await import(pathToFileURL(require.resolve(name)).href)).default;
const url = process.argv[2];
const OpenAI = await load('openai');
const Anthropic = await load('@anthropic-ai/sdk');
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });

const question = [{ role: 'user', content: 'Which cable joins two units?' }];
const parameters = {
  type: 'object',
  properties: { kind: { type: 'string', enum: ['QSFP', 'DAC'] }, ports: { type: 'integer', minimum: 1, maximum: 4 } },
  required: ['kind', 'ports'],
  additionalProperties: false,
};
const isCable = (value) => {
  assert.deepEqual(Object.keys(value), ['kind', 'ports']);
  assert(['QSFP', 'DAC'].includes(value.kind) && value.ports >= 1 && value.ports <= 4);
};

const checks = {
  async models() {
    const names = [];
    for await (const one of openai.models.list()) names.push(one.id);
    assert.deepEqual(names, ['nano']);
    assert.equal((await openai.models.retrieve('nano')).id, 'nano');
  },
  async chat() {
    const whole = await openai.chat.completions.create({ model: 'nano', messages: question, max_tokens: 40 });
    const stream = await openai.chat.completions.create(
        { model: 'nano', messages: question, max_tokens: 40, stream: true, stream_options: { include_usage: true } });
    let text = '', usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.deepEqual(usage, whole.usage);
  },
  async chatHelper() {
    const runner = openai.chat.completions.stream({ model: 'nano', messages: question, max_tokens: 10 });
    const last = await runner.finalChatCompletion();
    assert.equal(last.choices[0].message.role, 'assistant');
  },
  async logprobs() {
    const answer = await openai.chat.completions.create(
        { model: 'nano', messages: question, max_tokens: 3, logprobs: true, top_logprobs: 2 });
    assert.equal(answer.choices[0].logprobs.content.length, 3);
  },
  async jsonSchema() {
    const answer = await openai.chat.completions.create({ model: 'nano', messages: question,
      response_format: { type: 'json_schema', json_schema: { name: 'cable', strict: true, schema: parameters } } });
    isCable(JSON.parse(answer.choices[0].message.content));
  },
  async tools() {
    const tools = [{ type: 'function', function: { name: 'find_cable', parameters } }];
    const asked = { model: 'nano', messages: question, tools, tool_choice: 'required' };
    const answer = await openai.chat.completions.create(asked);
    assert.equal(answer.choices[0].finish_reason, 'tool_calls');
    isCable(JSON.parse(answer.choices[0].message.tool_calls[0].function.arguments));
    const streamed = await openai.chat.completions.stream(asked).finalChatCompletion();
    assert.deepEqual(streamed.choices[0].message.tool_calls[0].function.arguments,
        answer.choices[0].message.tool_calls[0].function.arguments);
    await openai.chat.completions.create({ model: 'nano', max_tokens: 3, messages: [...question,
      answer.choices[0].message, { role: 'tool', tool_call_id: answer.choices[0].message.tool_calls[0].id, content: 'ok' }] });
  },
  async completions() {
    const answer = await openai.completions.create({ model: 'nano', prompt: 'A cable', max_tokens: 4, echo: true });
    assert(answer.choices[0].text.startsWith('A cable'));
  },
  async responses() {
    const answer = await openai.responses.create({ model: 'nano', input: 'Which cable joins two units?' });
    assert.equal(answer.status, 'completed');
    const stream = openai.responses.stream({ model: 'nano', input: 'Which cable joins two units?' });
    let text = '';
    stream.on('response.output_text.delta', (event) => { text += event.delta; });
    const last = await stream.finalResponse();
    assert.equal(text, answer.output_text);
    assert.equal(last.output_text ?? text, text);
    const json = await openai.responses.create({ model: 'nano', input: 'Which?',
      text: { format: { type: 'json_schema', name: 'cable', schema: parameters, strict: true } } });
    isCable(JSON.parse(json.output_text));
  },
  async openaiErrors() {
    await assert.rejects(openai.chat.completions.create({ model: 'gpt-4', messages: question }),
        (error) => error instanceof OpenAI.NotFoundError && error.code === 'model_not_found');
    await assert.rejects(openai.chat.completions.create({ model: 'nano', messages: question, temperature: 9 }),
        (error) => error instanceof OpenAI.BadRequestError && error.param === 'temperature');
  },
  async messages() {
    const asked = { model: 'nano', messages: question, max_tokens: 40, system: 'Be short.' };
    const answer = await anthropic.messages.create(asked);
    assert.equal(answer.content[0].type, 'text');
    const last = await anthropic.messages.stream(asked).finalMessage();
    assert.deepEqual(last.content, answer.content);
    assert.equal(last.stop_reason, answer.stop_reason);
    assert((await anthropic.messages.countTokens({ model: 'nano', messages: question })).input_tokens > 3);
  },
  async messagesTools() {
    const asked = { model: 'nano', messages: question, max_tokens: 100, tool_choice: { type: 'any' },
      tools: [{ name: 'find_cable', description: 'd', input_schema: parameters }] };
    const answer = await anthropic.messages.create(asked);
    assert.equal(answer.stop_reason, 'tool_use');
    isCable(answer.content[0].input);
    const last = await anthropic.messages.stream(asked).finalMessage();
    assert.deepEqual(last.content[0].input, answer.content[0].input);
  },
  async anthropicErrors() {
    await assert.rejects(anthropic.messages.create({ model: 'nano', messages: question }),
        (error) => error instanceof Anthropic.BadRequestError);
    await assert.rejects(anthropic.messages.create({ model: 'claude', messages: question, max_tokens: 1 }),
        (error) => error instanceof Anthropic.NotFoundError);
  },
};

let failures = 0;
const tools = !process.argv.includes('--no-tools');  // the model has a template for them
for (const [name, check] of Object.entries(checks)) {
  if (!tools && /[tT]ools/.test(name)) continue;
  try {
    await check();
    console.log(`ok ${name}`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED ${name}: ${error.stack}`);
  }
}
process.exit(failures === 0 ? 0 : 1);
