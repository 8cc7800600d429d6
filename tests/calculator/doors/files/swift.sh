#!/bin/bash
# adapters beside 4-bit weights, of our own making
MODEL=Qwen/Qwen2.5-1.5B-Instruct
ARGS=(
    --torch_dtype bfloat16
    --max_length 1024
)

CUDA_VISIBLE_DEVICES=0 \
swift sft \
    --model "$MODEL" \
    --train_type lora \
    --dataset 'ours#500' \
    "${ARGS[@]}" \
    --per_device_train_batch_size ${BATCH:-8} \
    --gradient_accumulation_steps 4 \
    --lora_rank 16 \
    --target_modules all-linear \
    --quant_bits 4 \
    --learning_rate 1e-4 \
    --output_dir output
