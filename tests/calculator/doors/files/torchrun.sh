export WANDB_MODE=offline
torchrun --standalone --nproc-per-node=4 train.py \
    --model_name_or_path Qwen/Qwen2.5-0.5B \
    --data_path ours.json \
    --bf16 True \
    --per_device_train_batch_size 8 \
    --gradient_accumulation_steps 2 \
    --fsdp "full_shard auto_wrap" \
    --fsdp_transformer_layer_cls_to_wrap Qwen2DecoderLayer \
    --model_max_length 2048 > log.txt
