import { defineConfig } from 'vite';
import { oneFile } from './build/one-file.mjs';
import { sampleData } from './build/sample-data.mjs';

export default defineConfig({
  plugins: [sampleData(), oneFile()],
  build: {
    target: 'es2021',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    emptyOutDir: true,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 600,
  },
  test: { environment: 'happy-dom', include: ['test/**/*.test.ts'], setupFiles: ['test/setup.ts'], testTimeout: 60_000, hookTimeout: 60_000 },
});
